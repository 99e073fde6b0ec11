#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an idle agent costs: memory and processor over some time on the fake DGX H100, default settings.
Usage: idle.py AGENT [SECONDS]"""
import os
import sys
import time

sys.dont_write_bytecode = True  # nothing is built outside build/
from rig import Rig

agent, seconds = os.path.abspath(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
rig = Rig(agent)
try:
    rig.wait_healthy()
    time.sleep(2)
    before, reads = rig.cpu(), rig.metric("frond_agent_reads_total")
    begin, writes = time.monotonic(), len(rig.statuses())
    time.sleep(seconds)
    used, lasted = rig.cpu() - before, time.monotonic() - begin
    reads = rig.metric("frond_agent_reads_total") - reads
    with open(f"/proc/{rig.process.pid}/status") as file:
        peak = next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    print(f"rss_peak_mib {peak / 2**10:.2f}")
    print(f"rss_mib {rig.rss() / 2**20:.2f}")
    print(f"cpu_percent_of_a_core {used / lasted * 100:.3f}")
    print(f"cpu_us_per_read {used / reads * 1e6:.0f}")
    print(f"reads {reads:.0f} writes {len(rig.statuses()) - writes} seconds {lasted:.0f}")
finally:
    rig.close()
