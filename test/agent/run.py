#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""frond-agent against a fake API server and a fake driver, with faults. Scenarios run side by side, each with its own
agent. Last line: N passed, N failed. Usage: run.py SANITIZED_AGENT RELEASE_AGENT [SCENARIO…]"""
import concurrent.futures
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import traceback

sys.dont_write_bytecode = True  # nothing is built outside build/
from fakeapi import BASE
from rig import H100, NVML, XML, Rig, health_of, make_ca, once, replace

SANITIZED, RELEASE = (os.path.abspath(path) for path in sys.argv[1:3])
SEED = int(os.environ.get("FROND_SEED", "0")) or random.randrange(1, 2**31)
CYCLES = int(os.environ.get("FROND_AGENT_CYCLES", "3000"))
ERRORS = int(os.environ.get("FROND_AGENT_ERRORS", "1000"))
DOWN_S = float(os.environ.get("FROND_AGENT_DOWN_S", "20"))
FIXED = ("index", "model", "memoryMiB", "numaNode", "pciBusId")  # cannot change while the machine is the same
HEALTHY, UNKNOWN = ["Healthy"] * 8, ["Unknown"] * 8


def check(condition, sentence):
    if not condition:
        raise AssertionError(sentence)


def true_to(truth, status):
    """Nothing said that is not so: a field may be missing, links too, but what is there is right."""
    check(len(status.get("devices", [])) == 8, f"{len(status.get('devices', []))} devices")
    for device, real in zip(status["devices"], truth["devices"]):
        check(device["id"] in (real["id"], f"unknown-{real['index']}"), f"id {device['id']}")
        for field in FIXED:
            check(field not in device or device[field] == real[field], f"{field} {device.get(field)}")
        for link in device.get("links", []):
            check(link in real["links"], f"link {link}")


def ends_well(rig):
    """A scenario is over: still alive and well, nothing odd was asked of the server, no secret was logged, and it ends."""
    check(rig.get("/healthz") == "ok\n", "healthz")
    check(rig.api.complaints == [], f"the server was asked: {rig.api.complaints}")
    check("token-" not in rig.logged(), "a token in the log")
    begin = time.monotonic()
    code = rig.stop()
    check(code == 0, f"exit code {code}\n{rig.logged()}")
    check(time.monotonic() - begin < 4, "slow to end")
    check("Sanitizer" not in rig.logged() and "runtime error" not in rig.logged(), rig.logged())


def idle_renews_its_lease(rig_of):
    """With a heartbeat of 30 s these are two or three renewals a minute, and a report every 5 to 5.6 minutes."""
    rig = rig_of(SANITIZED, "utilization 0 5\nused 0 500", args=["--heartbeat", "1s", "--interval", "50ms"])
    rig.wait_healthy()
    for i in range(60):  # use that wavers is no news, however unevenly a busy machine looks: all is far from 2.5 and 7.5
        rig.machine(f"utilization 0 {4 + i % 3}\nused 0 {500 + i % 7 * 20}")
        time.sleep(0.4)
    with rig.api.lock:
        reports = [when for when, _ in rig.api.accepted]
        renewals = list(rig.api.renewals)
    gaps = [b - a for a, b in zip(reports, reports[1:])]
    check(len(gaps) in (1, 2) and all(9.9 < gap < 12.5 for gap in gaps), f"gaps of reports {gaps} with a heartbeat of 1 s")
    beats = [b - a for (a, _), (b, _) in zip(renewals, renewals[1:])]
    check(16 <= len(beats) <= 28, f"{len(beats)} renewals in 24 s with a heartbeat of 1 s")
    check(all(0.8 < beat < 2.5 for beat in beats), f"gaps of renewals {beats}")
    check(len({round(beat, 2) for beat in beats}) > 3, f"no jitter: {beats}")
    times = [said for _, said in renewals]
    check(times == sorted(set(times)), f"renewTime stands still or goes back: {times}")
    check(renewals[0][0] > reports[0], "the Lease was there before the report")
    check(all(status["devices"][0]["utilization"] == 5 for status in rig.statuses()[1:]), "utilisation is not calm")
    check(rig.statuses()[0]["heartbeat"] < rig.statuses()[-1]["heartbeat"], "the heartbeat stands still")
    check(time.time() - rig.metric("frond_agent_renewed_timestamp_seconds") < 4, "the metric")
    ends_well(rig)


def changes_are_written_at_once(rig_of):
    rig = rig_of(SANITIZED, args=["--interval", "100ms"])
    rig.wait_healthy()
    time.sleep(1.5)
    for lines, index, health in (("lost 3", 3, "Unhealthy"), ("", 3, "Healthy"), ("xid 5 79", 5, "Unhealthy")):
        count, begin = len(rig.statuses()), time.monotonic()
        rig.machine(lines)
        rig.wait("the change", lambda: len(rig.statuses()) > count and
                 rig.statuses()[-1]["devices"][index]["health"] == health, 5)
        check(time.monotonic() - begin < 3, f"{time.monotonic() - begin} s for {lines}")
        time.sleep(1.2)
    rig.machine("xid 5 79\ndown 0 4")
    rig.wait("the slower link", lambda: rig.statuses()[-1]["devices"][0]["bandwidthGBps"] == 425, 5)
    rig.machine("xid 5 79\nutilization 2 90")
    rig.wait("utilisation", lambda: rig.statuses()[-1]["devices"][2].get("utilization", 0) >= 70, 8)
    ends_well(rig)


def api_is_down(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "3s", "--interval", "200ms"])
    rig.wait_healthy()
    rig.api.down()
    time.sleep(DOWN_S / 2)
    rig.machine("lost 1")
    time.sleep(DOWN_S / 2)
    check(rig.get("/healthz") == "ok\n", "healthz while the API is down")
    check(rig.metric('frond_agent_requests_total{answer="unreachable"}') >= 2, "it did not try")
    check(rig.metric('frond_agent_requests_total{answer="unreachable"}') <= 4 + DOWN_S / 4, "it hammered")
    count = len(rig.statuses())
    rig.api.up()
    rig.wait("a report after the outage", lambda: len(rig.statuses()) > count, 31)
    check(rig.statuses()[-1]["devices"][1]["health"] == "Unhealthy", "what happened meanwhile is missing")
    rig.wait("accepted again", lambda: "accepted again" in rig.logged(), 5)
    rig.wait("the Lease as well", lambda: rig.renewals() and rig.renewals()[-1] > rig.api.accepted[-1][0], 10)
    for what in ("report", "Lease"):
        check(rig.logged().count(f"the {what} was not accepted") <= 1, "one line for one outage\n" + rig.logged())
    ends_well(rig)


def api_is_down_at_the_start(rig_of):
    rig = rig_of(SANITIZED, up=False)
    time.sleep(4)
    rig.api.up()
    rig.wait_healthy(20)
    ends_well(rig)


def said(rig):
    """How often it was heard of: reports and renewals."""
    return len(rig.statuses()) + len(rig.renewals())


def refusals(rig):
    with rig.api.lock:
        return sum(code == 401 for _, code in [*rig.api.requests, *rig.api.lease_requests])


def token_is_rotated(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "1s", "--interval", "200ms"])
    rig.wait_healthy()
    rig.api.token = "token-two"  # the server forgets the old one first
    rig.wait("401", lambda: refusals(rig) > 0, 10)
    count = said(rig)
    replace(rig.token_file, "token-two\n")
    rig.wait("a report with the new token", lambda: said(rig) > count, 15)
    replace(rig.token_file, "token-three\n")  # and now the other way round: no request may fail
    rig.api.token = "token-three"
    refused = refusals(rig)
    count = said(rig)
    rig.wait("a report with the third token", lambda: said(rig) > count + 1, 15)
    check(refusals(rig) == refused, "the new token was not read in time")
    times = os.stat(rig.token_file)
    with open(rig.token_file, "r+") as file:  # in place, as long as before, at the same time: only the 401 tells
        file.write("token-fours")
    os.utime(rig.token_file, ns=(times.st_atime_ns, times.st_mtime_ns))
    rig.api.token = "token-fours"
    count = said(rig)
    rig.wait("a report with the fourth token", lambda: said(rig) > count + 1, 15)
    for odd in ("", "two\nlines", "a b"):  # a broken file: the last good token is still used
        replace(rig.token_file, odd)
        count = said(rig)
        rig.wait(f"a report beside the token {odd!r}", lambda: said(rig) > count, 15)
    ends_well(rig)


def ca_is_rotated(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "1s", "--interval", "200ms"])
    rig.wait_healthy()
    ca, cert, key = make_ca(rig.folder, "second")
    rig.api.down()
    rig.api.cert, rig.api.key = cert, key
    rig.api.up()
    count = said(rig)
    rig.wait("distrust", lambda: rig.metric('frond_agent_requests_total{answer="tls_error"}') >= 2, 20)
    check(said(rig) == count, "it reported to a server that it cannot trust")
    shutil.copy(ca, rig.ca_file + ".new")
    os.rename(rig.ca_file + ".new", rig.ca_file)
    rig.wait("a report to the new server", lambda: said(rig) > count, 31)
    ends_well(rig)


def conflicts_and_errors(rig_of):
    rig = rig_of(SANITIZED, start=False, args=["--heartbeat", "1s"])
    faults = {0: (409, {}), 2: (500, {}), 4: (503, {}), 6: (409, {}), 8: (404, {}), 11: (403, {}),
              13: (302, {"Location": "https://127.0.0.1:1/"})}
    rig.api.mood = faults.get
    rig.start()
    end, flip = time.monotonic() + 40, 0
    while len(rig.api.requests) <= 15 and time.monotonic() < end:  # something to write
        flip += 1
        rig.machine("lost 3" if flip % 2 else "")
        time.sleep(0.7)
    check([code for _, code in rig.api.requests[:15]] ==
          [409, 201, 500, 200, 503, 200, 409, 200, 404, 201, 200, 403, 200, 302, 200], f"{rig.api.requests}")
    for answer, times in (("conflict", 2), ("server_error", 2), ("not_found", 2), ("refused", 2)):
        check(rig.metric(f'frond_agent_requests_total{{answer="{answer}"}}') == times, f"{answer}\n{rig.get('/metrics')}")
    ends_well(rig)


def lease_is_not_taken_for_a_moment(rig_of):
    rig = rig_of(SANITIZED, start=False, args=["--heartbeat", "1s"])
    faults = {0: (409, {}), 1: (500, {}), 3: (503, {}), 4: (403, {}), 6: (404, {}), 8: (429, {"Retry-After": "2"})}
    rig.api.lease_mood = faults.get
    rig.start()
    rig.wait("all of it", lambda: len(rig.api.lease_requests) > 10, 40)
    requests = rig.api.lease_requests[:10]
    check([code for _, code in requests] == [409, 500, 201, 503, 403, 200, 404, 200, 429, 200], f"{requests}")
    check(1.9 < requests[9][0] - requests[8][0] < 4.5, "Retry-After")
    check(len(rig.statuses()) <= 2, f"{len(rig.statuses())} reports: a Lease that fails once is no reason for any")
    check("the Lease is accepted again" in rig.logged(), rig.logged())
    ends_well(rig)


def lease_may_not_be_written(rig_of):
    """Rights come late, or its namespace is not there: the report itself says that the agent lives, as often."""
    for code in (403, 404):
        rig = rig_of(SANITIZED, start=False, args=["--heartbeat", "1s", "--interval", "100ms"])
        rig.api.lease_mood = lambda count, code=code: (code, {})
        rig.start()
        rig.wait("reports as heartbeats", lambda: len(rig.statuses()) >= 7, 15)
        with rig.api.lock:
            times = [when for when, _ in rig.api.accepted][2:]
        check(all(0.8 < b - a < 2.5 for a, b in zip(times, times[1:])), f"{times}")
        rig.machine("lost 1")
        begin = time.monotonic()
        rig.wait("bad news", lambda: rig.statuses()[-1]["devices"][1]["health"] == "Unhealthy", 5)
        check(time.monotonic() - begin < 2, "bad news waits for the Lease")
        check(rig.logged().count("the Lease was not accepted") == 1, rig.logged())
        rig.api.lease_mood = lambda count: None
        rig.wait("renewals", lambda: len(rig.renewals()) >= 2, 5)
        count = len(rig.statuses())
        rig.wait("more renewals", lambda: len(rig.renewals()) >= 6, 9)
        check(len(rig.statuses()) <= count + 1, "reports go on as heartbeats")
        ends_well(rig)


def lease_says_nothing_that_the_report_does_not(rig_of):
    """While a report is refused the Lease is not renewed: what the API server has is not what the agent sees."""
    rig = rig_of(SANITIZED, args=["--heartbeat", "1s", "--interval", "100ms"])
    rig.wait("a Lease", lambda: rig.renewals(), 10)
    rig.api.mood = lambda count: (422, {})
    rig.machine("lost 1")
    rig.wait("the refusal", lambda: rig.api.requests[-1][1] == 422, 5)
    count = len(rig.renewals())
    time.sleep(4)
    check(len(rig.renewals()) == count, "renewed beside a report that was refused")
    rig.api.mood = lambda count: None
    rig.wait("both", lambda: rig.statuses()[-1]["devices"][1]["health"] == "Unhealthy" and len(rig.renewals()) > count, 31)
    ends_well(rig)


def lease_is_deleted(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "1s"])
    rig.wait("a Lease", lambda: rig.renewals(), 10)
    reads, count = len(rig.api.reads), len(rig.statuses())
    rig.api.lease_there = rig.api.made = False  # as when the node goes, and comes back
    rig.wait("all of it again", lambda: rig.api.lease_there and rig.api.made and len(rig.statuses()) > count, 4)
    check(rig.api.reads[reads:] == [("/api/v1/nodes/" + rig.node, 200)], f"the owner was not asked for: {rig.api.reads[reads:]}")
    ends_well(rig)


def throttled(rig_of):
    rig = rig_of(SANITIZED, start=False)
    rig.api.mood = lambda count: (429, {"Retry-After": "6"}) if count == 0 else None
    rig.start()
    rig.wait_healthy(15)
    (first, code), (second, _) = rig.api.requests[:2]
    check(code == 429 and 5.9 < second - first < 8, f"{code}, then {second - first} s")
    ends_well(rig)


def object_is_deleted(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "1s"])
    rig.wait_healthy()
    rig.api.made = False
    count = len(rig.statuses())
    rig.wait("the object again", lambda: rig.api.made and len(rig.statuses()) > count, 15)
    ends_well(rig)


def api_is_slow(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "2s", "--interval", "200ms"])
    rig.wait_healthy()
    rig.api.mood = rig.api.lease_mood = lambda count: 3.0
    rig.machine("lost 1")
    count = len(rig.statuses())
    rig.wait("a slow report", lambda: len(rig.statuses()) > count, 10)
    rig.api.mood = rig.api.lease_mood = lambda count: 30.0  # longer than it waits
    rig.wait("a time-out", lambda: rig.metric('frond_agent_requests_total{answer="unreachable"}') >= 1, 25)
    begin = time.monotonic()
    check(rig.get("/healthz") == "ok\n" and time.monotonic() - begin < 1, "slow to answer while the server is slow")
    rig.api.mood = rig.api.lease_mood = lambda count: None
    rig.machine("")
    count, beats = len(rig.statuses()), len(rig.renewals())
    rig.wait("a report and a renewal afterwards", lambda: len(rig.statuses()) > count and len(rig.renewals()) > beats, 15)
    ends_well(rig)


def driver_hangs(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "2s", "--interval", "100ms"])
    rig.wait_healthy()
    good = rig.statuses()[-1]
    begin = time.monotonic()
    rig.machine("hang all")
    rig.wait("unknown", lambda: health_of(rig.statuses()[-1]) == UNKNOWN, 14)
    check(time.monotonic() - begin > 8, "too early to call it a hang")
    last = rig.statuses()[-1]
    for device, before in zip(last["devices"], good["devices"]):
        check(device["reason"] == "the driver has not come back from a call for 10 s", f"reason {device.get('reason')}")
        check({**device, "health": 0, "reason": 0} == {**before, "health": 0, "reason": 0}, "the rest is not as last known")
    check(rig.metric('frond_agent_driver_state{state="hung"}') == 1, "the metric")
    count = len(rig.renewals())
    rig.wait("heartbeats go on", lambda: len(rig.renewals()) >= count + 2, 8)
    check(len(os.listdir(f"/proc/{rig.process.pid}/task")) <= 3, "threads pile up")
    rig.machine("")
    rig.wait("healthy again", lambda: health_of(rig.statuses()[-1]) == HEALTHY, 5)
    check(rig.metric("frond_agent_hangs_total") == 1, "one hang")
    rig.machine("hang all")  # and the end comes while it hangs
    time.sleep(1)
    ends_well(rig)


def driver_hangs_from_the_start(rig_of):
    rig = rig_of(SANITIZED, "hang all")
    rig.wait("the watchdog", lambda: rig.metric("frond_agent_hangs_total") == 1, 15)
    check(rig.api.requests == rig.api.lease_requests == [], "it wrote what it cannot know")
    rig.machine("")
    rig.wait_healthy()
    ends_well(rig)


def driver_hangs_before_the_earlier_report_is_known(rig_of):
    rig = rig_of(SANITIZED, "utilization 0 95\nused 0 70144", args=["--heartbeat", "2s"])
    rig.wait_healthy()
    good = rig.statuses()[-1]
    check(rig.stop() == 0, "it ended badly")
    count = len(rig.statuses())
    rig.api.down()
    rig.machine("hang all")
    rig.start()
    rig.wait("the watchdog", lambda: rig.metric("frond_agent_hangs_total") == 1, 15)
    rig.api.up()
    beats = len(rig.renewals())
    rig.wait("heartbeats", lambda: len(rig.statuses()) > count and len(rig.renewals()) > beats + 1, 35)
    for status in rig.statuses()[count:]:
        check(health_of(status) == UNKNOWN, f"{status}")
        for device, before in zip(status["devices"], good["devices"]):
            check(device["reason"] == "the driver has not come back from a call for 10 s", f"reason {device.get('reason')}")
            check({**device, "health": 0, "reason": 0} == {**before, "health": 0, "reason": 0}, "the rest is not as last known")
    ends_well(rig)


def driver_goes_away(rig_of):
    rig = rig_of(SANITIZED, "lost 2", args=["--interval", "100ms", "--heartbeat", "1s"])
    dead = HEALTHY[:2] + ["Unhealthy"] + HEALTHY[3:]
    rig.wait("the dead one", lambda: rig.statuses() and health_of(rig.statuses()[-1]) == dead, 10)
    rig.machine("lost 2\nfail nvmlDeviceGetCount_v2 any 999")  # the driver answers, but not with its devices
    unknown = UNKNOWN[:2] + ["Unhealthy"] + UNKNOWN[3:]
    rig.wait("unknown", lambda: health_of(rig.statuses()[-1]) == unknown, 5)
    count = len(rig.renewals())
    rig.wait("more of the same", lambda: len(rig.renewals()) > count + 2, 8)
    rig.machine("")
    rig.wait("healthy again", lambda: health_of(rig.statuses()[-1]) == HEALTHY, 5)
    check(all(status["total"] == 8 for status in rig.statuses()), "it said that there are no GPUs")
    ends_well(rig)


def no_driver_at_all(rig_of):
    for nvml, machine, word in (("/nonexistent/libnvidia-ml.so.1", "", "no_library"), (NVML, "no-driver", "no_driver")):
        rig = rig_of(SANITIZED, machine, nvml=nvml, args=["--interval", "100ms", "--heartbeat", "1s"])
        rig.wait("a look", lambda: "nothing is reported" in rig.logged(), 5)
        time.sleep(2)
        check(rig.api.requests == rig.api.lease_requests == [], "it wrote though it knows nothing")
        check(rig.metric(f'frond_agent_driver_state{{state="{word}"}}') == 1, rig.get("/metrics"))
        check(rig.metric("frond_agent_reporting") == 0, "reporting")
        check(rig.logged().count("nothing is reported") == 1, "one line is enough")
        ends_well(rig)


def random_error_codes(rig_of):
    truth = once(SANITIZED)
    rig = rig_of(SANITIZED, args=["--interval", "5ms", "--heartbeat", "1s"])
    rig.wait_healthy()
    for i, percent in enumerate((1, 10, 50, 100)):
        rig.machine(f"inject {percent} {SEED + i}")
        reads, failed = rig.metric("frond_agent_reads_total"), rig.metric("frond_agent_failed_calls_total")
        rig.wait("200 looks", lambda: rig.metric("frond_agent_reads_total") > reads + 200, 40)
        rig.wait(f"{ERRORS / 4} error codes", lambda: rig.metric("frond_agent_failed_calls_total") > failed + ERRORS / 4, 600)
    print(f"  random error codes: {rig.metric('frond_agent_failed_calls_total'):.0f}")
    count = len(rig.statuses())
    for status in rig.statuses():
        true_to(truth, status)
    rig.machine("")
    rig.wait_healthy(10, after=count)
    true_to(truth, rig.statuses()[-1])
    ends_well(rig)


def any_bytes_as_answers(rig_of):
    rig = rig_of(SANITIZED, args=["--interval", "5ms", "--heartbeat", "1s"])
    rig.wait_healthy()
    for i, percent in enumerate((5, 50, 100)):
        rig.machine(f"garbage {percent} {SEED + i}")
        reads = rig.metric("frond_agent_reads_total")
        rig.wait("200 looks", lambda: rig.metric("frond_agent_reads_total") > reads + 200, 40)
    count = len(rig.statuses())
    rig.machine("")
    rig.wait("8 GPUs", lambda: any(s["total"] == 8 for s in rig.statuses()[count:]), 10)
    ends_well(rig)  # the server complains about what contradicts itself


def memory_stays_flat(rig_of):
    rig = rig_of(RELEASE, args=["--interval", "1ms", "--heartbeat", "1s"])
    rig.wait_healthy()

    def cycles(count):
        end = rig.metric("frond_agent_reads_total") + count
        flip = 0
        while rig.metric("frond_agent_reads_total") < end:
            rig.machine("" if flip % 2 else "lost 3")
            flip += 1
            time.sleep(0.2)

    cycles(CYCLES / 3)
    before = rig.rss()
    cycles(CYCLES)
    grown = rig.rss() - before
    print(f"  memory: {before / 2**20:.2f} MiB, {grown / 1024:+.0f} KiB after {CYCLES} more looks, "
          f"{len(rig.statuses())} writes")
    check(grown < 512 * 1024, f"grew by {grown} bytes")
    ends_well(rig)


def restart_knows_what_was_reported(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "1s", "--interval", "100ms"])
    rig.wait_healthy()
    good = rig.statuses()[-1]
    rig.machine("xid 5 79")
    rig.wait("the XID", lambda: rig.statuses()[-1]["devices"][5]["health"] == "Unhealthy", 5)
    check(rig.statuses()[-1]["devices"][5]["reason"] == "XID 79", "the reason")
    # A dead GPU has no name for an agent that never saw it alive, and a driver tells of an XID once.
    check(rig.stop() == 0, "it ended badly")
    rig.machine("lost 3")
    count = len(rig.statuses())
    rig.start()
    rig.wait("two reports after the restart", lambda: len(rig.statuses()) > count + 1, 15)
    for status in rig.statuses()[count:]:
        check([d["id"] for d in status["devices"]] == [d["id"] for d in good["devices"]], "another GPU")
        check([d["health"] for d in status["devices"]] == HEALTHY[:3] + ["Unhealthy", "Healthy", "Unhealthy", "Healthy", "Healthy"], f"{status}")
        check(status["devices"][3]["model"] == good["devices"][3]["model"] and status["devices"][5]["reason"] == "XID 79", f"{status}")
    # The driver is gone when the agent comes back: what was last known is unknown now, and is still there.
    check(rig.stop() == 0, "it ended badly")
    rig.machine("no-driver")
    count = len(rig.statuses())
    rig.start()
    rig.wait("a report without a driver", lambda: len(rig.statuses()) > count, 8)
    unknown = UNKNOWN[:3] + ["Unhealthy", "Unknown", "Unhealthy"] + UNKNOWN[6:]
    check(all(health_of(status) == unknown for status in rig.statuses()[count:]), f"{rig.statuses()[count:]}")
    check("does not answer" in rig.statuses()[-1]["devices"][0]["reason"], "the reason")
    rig.machine("")  # and a driver that starts again has repaired what an XID stands for
    rig.wait_healthy(5, after=count)
    ends_well(rig)


def what_others_left_is_not_believed(rig_of):
    for left in ({"total": 3}, {"total": 1, "devices": [{"id": "GPU-x", "index": 0, "health": "Unhealthy", "reason": "XID 79"}]}):
        rig = rig_of(SANITIZED, start=False)
        rig.api.left = left
        rig.start()
        rig.wait_healthy()
        check(all(health_of(status) == HEALTHY for status in rig.statuses()), "what was left shows")
        ends_well(rig)


def it_may_not_read(rig_of):
    rig = rig_of(SANITIZED, start=False)
    rig.api.forbid_reads = True
    rig.start()
    rig.wait("another try", lambda: rig.api.reads == [(BASE + rig.node, 403)] * 3, 10)
    check(rig.api.requests == [] and "HTTP 403" in rig.logged() and "may not read" not in rig.logged(), rig.logged())
    if DOWN_S >= 300:  # for so long that it is meant
        rig.wait_healthy(345)
        check(rig.logged().count("may not read") == 2, rig.logged())
    ends_well(rig)


def reads_are_refused_for_a_moment(rig_of):
    rig = rig_of(SANITIZED, args=["--heartbeat", "1s", "--interval", "100ms"])
    rig.wait_healthy()
    rig.machine("xid 5 79")
    rig.wait("the XID", lambda: rig.statuses()[-1]["devices"][5]["health"] == "Unhealthy", 5)
    check(rig.stop() == 0, "it ended badly")
    rig.machine("")  # the driver has told
    count, reads, rig.api.refuse_reads = len(rig.statuses()), len(rig.api.reads), 1
    rig.start()
    rig.wait("two reports after the restart", lambda: len(rig.statuses()) > count + 1, 18)
    own, node = BASE + rig.node, "/api/v1/nodes/" + rig.node
    check(rig.api.reads[reads:] == [(own, 403), (own, 200), (node, 403), (node, 200)], f"{rig.api.reads}")
    for status in rig.statuses()[count:]:
        check(status["devices"][5]["health"] == "Unhealthy" and status["devices"][5]["reason"] == "XID 79", f"{status}")
    ends_well(rig)  # the server complains about an object without its owner


def odd_clients(rig_of):
    rig = rig_of(SANITIZED)
    rig.wait_healthy()
    held = []
    for text in (b"", b"GET /metr", b"POST /metrics HTTP/1.1\r\n\r\n", b"\0" * 9000, b"GET /../etc HTTP/1.1\r\n\r\n") * 5:
        sock = socket.create_connection(("127.0.0.1", rig.listen), 5)
        try:
            sock.sendall(text)
        except OSError:
            pass
        held.append(sock)
    rig.wait("an answer though others keep silent", lambda: answers(rig), 12)
    for sock in held:
        sock.close()
    ends_well(rig)


def answers(rig):
    try:
        return rig.get("/healthz") == "ok\n"
    except OSError:
        return False


def command_line(rig_of):
    def run(*args, env=None):
        out = subprocess.run([SANITIZED, *args], capture_output=True, text=True, timeout=30,
                             env={"PATH": os.environ["PATH"], **(env or {})})
        check("Sanitizer" not in out.stderr, out.stderr)
        return out.returncode, out.stdout, out.stderr

    check(run("--help")[0] == 0 and "usage:" in run("--help")[1], "--help")
    fine = ["--node", "a", "--api", "https://h"]
    for args, words in (([], "--node is missing"), (["--node", "A"], "--node must be"), (["--node", "a"], "--api is missing"),
                        (["--node", "a", "--api", "http://h"], "--api must be"), (["--node", "a", "--api", "https://u@h"], "--api must be"),
                        (["--node", "a", "--api", "https://h/x"], "--api must be"), ([*fine, "--interval", "0s"], "--interval must be"),
                        ([*fine, "--heartbeat", "5m"], "--heartbeat must be"), ([*fine, "--listen", "9417"], "--listen must be"),
                        ([*fine, "--listen", "1.2.3.4:70000"], "--listen must be"), ([*fine, "--node", "b"], "twice"),
                        ([*fine, "--nope"], "not a flag"), ([*fine, "--nvml"], "needs a value")):
        code, _, said = run(*args)
        check(code == 2 and words in said and said.count("\n") == 1, f"{args}: {code} {said}")
    machine = {"FROND_FAKE_NVML": H100}
    code, said, _ = run("--once", "--nvml", NVML, "--hwloc-xml", XML, env=machine)
    check(code == 0 and said.count('"Healthy"') == 8, said)
    code, said, why = run("--once", "--nvml", "/nonexistent")
    check(code == 1 and said == "" and "/nonexistent" in why, why)
    code, _, why = run(*fine, "--listen", "192.0.2.1:80")
    check(code == 1 and "cannot listen" in why, why)


SCENARIOS = [api_is_down, conflicts_and_errors, api_is_slow, driver_hangs, token_is_rotated, ca_is_rotated,
             idle_renews_its_lease, lease_may_not_be_written, lease_is_not_taken_for_a_moment, lease_says_nothing_that_the_report_does_not, lease_is_deleted, changes_are_written_at_once, random_error_codes, any_bytes_as_answers, memory_stays_flat,
             restart_knows_what_was_reported, what_others_left_is_not_believed, it_may_not_read, reads_are_refused_for_a_moment, driver_hangs_from_the_start, driver_hangs_before_the_earlier_report_is_known, throttled, driver_goes_away, no_driver_at_all, api_is_down_at_the_start,
             object_is_deleted, odd_clients, command_line]


def run_one(scenario):
    rigs = []

    def rig_of(*args, **named):
        rigs.append(Rig(*args, **named))
        return rigs[-1]

    begin = time.monotonic()
    try:
        scenario(rig_of)
        problem = None
    except Exception:  # the scenario failed, whatever it was
        problem = traceback.format_exc() + "".join(rig.logged() for rig in rigs if rig.process is not None)
    for rig in rigs:
        try:
            rig.close()
        except AssertionError as error:
            problem = problem or str(error)
    return scenario.__name__, problem, time.monotonic() - begin


def main():
    wanted = [s for s in SCENARIOS if len(sys.argv) < 4 or s.__name__ in sys.argv[3:]]
    print(f"seed {SEED}")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for name, problem, seconds in pool.map(run_one, wanted):
            failed += problem is not None
            print(f"{'FAIL' if problem else 'ok  '} {name} {seconds:.1f} s" + (f"\n{problem}" if problem else ""), flush=True)
    print(f"{len(wanted) - failed} passed, {failed} failed")
    return failed != 0


sys.exit(main())
