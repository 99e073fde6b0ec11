#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an idle agent costs: memory and processor over some time on the fake DGX H100, default settings. Prints Markdown,
fails over the targets. Usage: idle.py AGENT [SECONDS]"""
import os
import sys
import time

sys.dont_write_bytecode = True  # nothing is built outside build/
from rig import Rig

agent, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
RSS_MIB, CPU_PERCENT = 10e6 / 2**20, 0.1  # targets
rig = Rig(agent, env={"FROND_FAKE_NVML_EVERY": "20"})  # its looks at its own description are no driver's
try:
    rig.wait_healthy()
    time.sleep(2)
    before, reads = rig.cpu(), rig.metric("frond_agent_reads_total")
    begin, writes, renewals = time.monotonic(), len(rig.statuses()), len(rig.renewals())
    time.sleep(seconds)
    used, lasted = rig.cpu() - before, time.monotonic() - begin
    reads = rig.metric("frond_agent_reads_total") - reads
    with open(f"/proc/{rig.process.pid}/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    rss, percent = rig.rss() / 2**20, used / lasted * 100
    print("| agent, idle | measured | target |\n|---|---|---|")
    print(f"| memory | {rss:.2f} MiB (peak while starting {peak / 2**10:.2f}) | {RSS_MIB:.2f} MiB |")
    print(f"| processor | {percent:.3f} % of a core, {used / reads * 1e6:.0f} µs a look | {CPU_PERCENT} % |")
    print(f"\n{reads:.0f} looks, {len(rig.statuses()) - writes} reports and {len(rig.renewals()) - renewals} renewals in {lasted:.0f} s")
    good = rss <= RSS_MIB and percent < CPU_PERCENT
finally:
    rig.close()
sys.exit(not good)
