"""Sends hostile input to a real server as one tenant, while a watchdog measures the response times of another tenant.

``python tests/deep/fuzz.py --minutes 30 [--seed 1]`` prints counts each minute and at the end. It exits with 1 if the server
answered with an undocumented 5xx, ended, or left a job that does not end, or if a turn of its event loop took more than `TURN_S`
of CPU. The other tenant's times are printed twice: before the attack on the same server, as a control, and during it. Both come
with the machine's load and the duration of a few milliseconds of the watchdog's own work. If the control is slow, or the watchdog
itself is late, the machine is busy.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

sys.path.insert(0, str(Path(__file__).parent))
from hostile_input import NAMES, TYPES, Hostile

OPERATOR_KEY = "the-operators-key-of-the-fuzzer-0123456789"
ROOT = Path(__file__).parents[2]
KEPT_DOCUMENTS = 15
IMPORTS_KEPT = 5
REPORT_S = 60.0
CONTROL_S = 60.0
"""Seconds for which the watchdog measures before the attack begins."""
JOBS_END_S = 300.0
"""Seconds within which every job must end after cancelling was requested."""
WORK_S = 0.02
"""CPU time that the watchdog uses at each check. Its wall-clock duration shows the machine's share of a delay."""
POLL_INTERVAL_S = 0.1
TURN_S = 0.1
"""CPU time of a turn of the server's event loop, without garbage collection. The server logs what ran in longer turns."""
ALLOWED = {502, 503, 504}
"""Accepted 5xx codes: those that name a store, a model or a time limit."""


@dataclass(slots=True)
class Tally:
    """Counts of requests and of responses."""

    sent: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    longest_s: dict[str, float] = field(default_factory=dict)
    late_s: float = 0.0
    over_1_s: Counter[str] = field(default_factory=Counter)
    looks: int = 0
    long_turns: int = 0
    control: dict[str, Any] = field(default_factory=dict)
    """The watchdog's measurements before the attack."""
    jobs: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)

    def waited(self, what: str, waited_s: float) -> None:
        """Record the duration of a request of the watchdog."""
        self.longest_s[what] = max(self.longest_s.get(what, 0.0), waited_s)
        self.over_1_s[what] += waited_s > 1
        self.looks += 1

    def watchdog(self) -> dict[str, Any]:
        """Return the durations for printing, with the load of the last minute."""
        return {
            "requests": self.looks, "longest_s": {k: round(v, 3) for k, v in self.longest_s.items()},
            "over_1_s": dict(self.over_1_s), "own_work_late_s": round(self.late_s, 3),
            "load_and_cores": (round(os.getloadavg()[0], 1), os.cpu_count()),
        }  # fmt: skip

    def told(self) -> dict[str, Any]:
        """Return all counts for printing."""
        return {
            "sent": dict(self.sent), "total": sum(self.sent.values()),
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "watchdog": self.watchdog(), "control": self.control, "long turns": self.long_turns,
            "jobs": dict(self.jobs), "job errors": dict(self.codes), "faults": self.faults[:20],
        }  # fmt: skip


class Attack:
    """The nonsensical requests of one tenant."""

    def __init__(self, http: httpx.AsyncClient, key: str, hostile: Hostile, tally: Tally) -> None:
        self._http, self._key, self._hostile, self._tally = http, key, hostile, tally
        self._documents: list[str] = []
        self._imported: list[str] = []
        self._archive = b""
        self._routes: list[tuple[str, str]] = []

    async def prepare(self, archive: bytes) -> None:
        """Read the list of routes."""
        self._archive = archive
        spec = (await self._http.get("/api/v1/openapi.json")).json()
        self._routes = [
            (method.upper(), path)
            for path, methods in spec["paths"].items()
            for method in methods
            if method in ("post", "put", "patch", "get", "delete") and "/events" not in path and "/tenants" not in path
        ]

    async def forever(self) -> None:
        """Send one request after another."""
        kinds = (self._upload, self._upload, self._search, self._search, self._json, self._json, self._upload_json, self._import)
        while True:
            await self._hostile.random.choice(kinds)()

    async def _send(self, kind: str, method: str, path: str, **options: Any) -> httpx.Response | None:
        self._tally.sent[kind] += 1
        headers = {"Authorization": f"Bearer {self._key}", **options.pop("headers", {})}
        try:
            response = await self._http.request(method, path, headers=headers, **options)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, UnicodeError) as error:
            self._tally.statuses[-1] += 1
            if isinstance(error, (httpx.ConnectError, httpx.ReadTimeout)):
                self._tally.faults.append(f"{kind} {method} {path}: {type(error).__name__} {error}")
            return None
        self._tally.statuses[response.status_code] += 1
        if response.status_code >= 500 and response.status_code not in ALLOWED:
            self._tally.faults.append(f"{kind} {method} {path}: {response.status_code} {response.text[:300]}")
        return response

    async def _upload(self) -> None:
        hostile = self._hostile
        name, media = hostile.random.choice(NAMES), hostile.random.choice(TYPES)
        data = {"key": hostile.text()[:20]} if hostile.random.random() < 0.2 else {}
        file = {"file": (name or "a", hostile.document(), media or "text/markdown")}
        response = await self._send("upload", "POST", "/api/v1/documents", files=file, data=data)
        await self._remember(response)

    async def _upload_json(self) -> None:
        hostile = self._hostile
        body: dict[str, Any] = {"text": hostile.document()[:200_000].decode("utf-8", "replace")}
        if hostile.random.random() < 0.5:
            body["metadata"] = hostile.value(1)
        if hostile.random.random() < 0.3:
            body["chunking"] = {"chunk_size": hostile.random.choice((16, 20, 64, 220, 2048, 9999)), "overlap": hostile.value(4)}
        content = json.dumps(body).encode()
        response = await self._send("document as JSON", "POST", "/api/v1/documents", content=content, headers=JSON)
        await self._remember(response)

    async def _remember(self, response: httpx.Response | None) -> None:
        if response is not None and response.status_code == 202:
            with contextlib.suppress(KeyError, TypeError, ValueError):
                data = response.json()["data"]
                self._documents += [each["document_id"] for each in data.get("documents", [data]) if each.get("document_id")]
        if len(self._documents) > KEPT_DOCUMENTS:
            oldest = self._documents.pop(self._hostile.random.randrange(10))
            await self._send("delete", "DELETE", f"/api/v1/documents/{oldest}")

    async def _search(self) -> None:
        path = self._hostile.random.choice(("/api/v1/search", "/api/v1/search/dual-level", "/api/v1/answers"))
        content = json.dumps(self._hostile.search()).encode()
        await self._send("query", "POST", path, content=content, headers=JSON)

    async def _json(self) -> None:
        method, path = self._hostile.random.choice(self._routes)
        known = self._documents or ["0"]
        path = re.sub(r"\{[^}]*\}", lambda _: self._hostile.random.choice((*known[-3:], "0", "%00", "t_" + "0" * 32)), path)
        params = {self._hostile.name(): self._hostile.text()[:200] for _ in range(self._hostile.random.randrange(3))}
        with contextlib.suppress(UnicodeError):
            if method in ("GET", "DELETE"):
                if method == "DELETE" and path.endswith("/documents"):
                    return  # some parameter may match everything
                await self._send("query string", method, path, params=params)
            else:
                await self._send("JSON body", method, path, content=self._hostile.body(), headers=JSON)

    async def _import(self) -> None:
        if self._hostile.random.random() < 0.6:
            return
        archive = await asyncio.to_thread(self._hostile.archive, self._archive)
        name = f"imported-{self._hostile.random.randrange(10**9)}"
        headers = {"Authorization": f"Bearer {OPERATOR_KEY}", "Content-Type": "application/x-tar"}
        response = await self._send(
            "archive", "POST", "/api/v1/tenants/import", params={"name": name}, content=archive, headers=headers
        )
        if response is not None and response.status_code == 202:
            self._imported.append(response.json()["data"].get("tenant_id", ""))
        if len(self._imported) > IMPORTS_KEPT:
            oldest = self._imported.pop(0)
            operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
            await self._send("delete", "DELETE", f"/api/v1/tenants/{oldest}", headers=operator)


JSON = {"Content-Type": "application/json"}


async def watch(base: str, key: str, tally: Tally) -> None:
    """Send simple requests as another tenant, one at a time, and measure each."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=120) as http:
        asked = (
            ("live", "GET", "/health/live", None),
            ("list", "GET", "/api/v1/documents?limit=1", None),
            ("search", "POST", "/api/v1/search", {"query": "Who opened the array?", "limit": 3}),
            ("status", "GET", "/api/v1/tenants/me", None),
        )
        while True:
            for what, method, path, body in asked:
                begun = time.monotonic()
                response = await http.request(method, path, json=body)
                tally.waited(what, time.monotonic() - begun)
                if response.status_code != 200:
                    tally.faults.append(f"watchdog {path}: {response.status_code} {response.text[:200]}")
                begun = time.monotonic()
                used = time.process_time()
                while time.process_time() - used < WORK_S:
                    pass
                tally.late_s = max(tally.late_s, time.monotonic() - begun - WORK_S)
                await asyncio.sleep(POLL_INTERVAL_S)


def watch_in_a_process(base: str, key: str, report: Path) -> None:
    """Run the watchdog in a process, so that it need not wait for the attack's work. Write its measurements each second."""

    async def run() -> None:
        tally = Tally()
        watching = asyncio.create_task(watch(base, key, tally))
        while not watching.done():
            await asyncio.sleep(1)
            told = {"longest_s": tally.longest_s, "late_s": tally.late_s, "over": tally.over_1_s, "looks": tally.looks}
            part = report.with_suffix(".part")
            part.write_text(json.dumps({**told, "faults": tally.faults}))
            part.replace(report)
        watching.result()

    asyncio.run(run())


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a server on a free port."""
    environment = {
        **os.environ, "DATA_DIR": str(folder / "data"), "OPERATOR_KEY": OPERATOR_KEY, "PORT": "0", "LOG_FORMAT": "json",
        "LOG_LEVEL": "warning",
    }  # fmt: skip
    log = folder / "log"
    program = "from agentic_rag_backend.cli.app import main; main()"
    command = [sys.executable, "-c", program, "serve", "--port", str(_free_port())]
    port = command[-1]
    with log.open("wb") as written:
        process = subprocess.Popen(  # noqa: ASYNC220
            command, env=environment, stdout=written, stderr=written, cwd=folder, start_new_session=True
        )
    base = f"http://127.0.0.1:{port}"
    try:
        async with httpx.AsyncClient(base_url=base, timeout=5) as http:
            for _ in range(600):
                with contextlib.suppress(httpx.HTTPError):
                    if (await http.get("/health/ready")).status_code == 200:
                        break
                if process.poll() is not None:
                    raise SystemExit(f"the server did not start: {log.read_text()[-2000:]}")
                await asyncio.sleep(0.2)
        yield base, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(process.wait, 60)
        if process.poll() is None:
            process.kill()
            process.wait()


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def tenant(http: httpx.AsyncClient, name: str) -> tuple[str, str]:
    """Create a tenant; return its id and a key."""
    operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    made = (await http.post("/api/v1/tenants", json={"name": name}, headers=operator)).json()["data"]
    body = {"name": "fuzz", "scopes": ["admin"]}
    issued = (await http.post(f"/api/v1/tenants/{made['id']}/keys", json=body, headers=operator)).json()["data"]
    return made["id"], issued["key"]


async def fill(http: httpx.AsyncClient, key: str) -> None:
    """Submit a few examples and wait for them."""
    headers = {"Authorization": f"Bearer {key}"}
    for path in sorted((ROOT / "examples" / "corpus").iterdir())[:6]:
        file = {"file": (path.name, path.read_bytes(), "text/markdown")}
        (await http.post("/api/v1/documents", files=file, headers=headers)).raise_for_status()
    await ended(http, key, Tally())


async def unended(http: httpx.AsyncClient, headers: dict[str, str]) -> list[str]:
    """Return the ids of queued or running jobs."""
    found = []
    for state in ("queued", "running"):
        response = await http.get("/api/v1/jobs", params={"state": state, "limit": 100}, headers=headers)
        found += [job["id"] for job in response.json()["data"]]
    return found


async def ended(http: httpx.AsyncClient, key: str, tally: Tally, *, cancel: bool = False) -> None:
    """Wait until all jobs of a tenant have ended, and count their final states. ``cancel`` asks them to stop."""
    headers = {"Authorization": f"Bearer {key}"}
    until, before = time.monotonic() + JOBS_END_S, [""]
    while left := await unended(http, headers):
        if left != before:
            # On a busy machine, thousands of jobs take longer, but some of them end.
            until, before = time.monotonic() + JOBS_END_S, left
        if time.monotonic() > until:
            tally.faults.append(f"{len(left)} jobs do not end, such as {left[0]}")
            break
        if cancel:
            for job in left:
                tally.jobs["cancelling requested"] += 1
                await http.post(f"/api/v1/jobs/{job}/cancel", headers=headers)
        await asyncio.sleep(2)
    cursor: str | None = None
    while True:
        params = {"limit": 100, **({"cursor": cursor} if cursor else {})}
        page = (await http.get("/api/v1/jobs", params=params, headers=headers)).json()
        for job in page["data"]:
            tally.jobs[job["state"]] += 1
            if job.get("error"):
                tally.codes[job["error"]["code"]] += 1
        cursor = page["meta"].get("next_cursor")
        if not cursor:
            return


async def attack(minutes: float, seed: int, at_once: int) -> int:
    """Run the attack and print the results."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as name:
        folder = Path(name)
        async with served(folder) as (base, process), httpx.AsyncClient(base_url=base, timeout=180) as http:
            _, attacker = await tenant(http, "attacker")
            _, other = await tenant(http, "other")
            await fill(http, other)
            await fill(http, attacker)
            operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
            me = (await http.get("/api/v1/tenants/me", headers={"Authorization": f"Bearer {other}"})).json()["data"]
            archive = (await http.post(f"/api/v1/tenants/{me['id']}/export", headers=operator)).content
            report = folder / "watchdog.json"
            command = [sys.executable, __file__, "--watch", base, other, str(report)]
            watchdog = subprocess.Popen(command, start_new_session=True)  # noqa: ASYNC220
            tally.control = await _control(watchdog, report)
            watchdog = subprocess.Popen(command, start_new_session=True)  # noqa: ASYNC220
            attackers = []
            for number in range(at_once):
                one = Attack(http, attacker, Hostile(seed * 1_000 + number), tally)
                await one.prepare(archive)
                attackers.append(asyncio.create_task(one.forever()))
            await _until(minutes, attackers, process, watchdog, report, tally)
            for task in attackers:
                task.cancel()
            outcomes = await asyncio.gather(*attackers, return_exceptions=True)
            tally.faults += [f"the fuzzer itself: {each!r}" for each in outcomes if not isinstance(each, asyncio.CancelledError)]
            if process.poll() is None:
                await ended(http, attacker, tally, cancel=True)
            watchdog.terminate()
            watchdog.wait()
            _read(report, tally)
        _logged(folder / "log", tally)
    print(json.dumps(tally.told(), indent=1, ensure_ascii=False), flush=True)
    return int(bool(tally.faults))


async def _control(watchdog: subprocess.Popen[bytes], report: Path) -> dict[str, Any]:
    """Return the other tenant's durations without an attack, and end that watchdog."""
    await asyncio.sleep(CONTROL_S)
    watchdog.terminate()
    watchdog.wait()
    seen = Tally()
    _read(report, seen)
    report.unlink(missing_ok=True)
    return seen.watchdog()


async def _until(minutes: float, attackers: Any, process: Any, watchdog: Any, report: Path, tally: Tally) -> None:
    end = time.monotonic() + minutes * 60
    told = time.monotonic()
    while time.monotonic() < end and process.poll() is None and not any(task.done() for task in attackers):
        await asyncio.sleep(1)
        if watchdog.poll() is not None:
            tally.faults.append("the watchdog ended")
            return
        if time.monotonic() - told > REPORT_S:
            told = time.monotonic()
            _read(report, tally)
            line = tally.told()
            print(json.dumps({key: line[key] for key in ("total", "statuses", "watchdog", "control", "faults")}), flush=True)
    if process.poll() is not None:
        tally.faults.append(f"the server ended with {process.returncode}")


def _read(report: Path, tally: Tally) -> None:
    if report.exists():
        told = json.loads(report.read_text())
        tally.longest_s, tally.late_s, tally.looks = told["longest_s"], told["late_s"], told["looks"]
        tally.over_1_s = Counter(told["over"])
        tally.faults += [fault for fault in told["faults"] if fault not in tally.faults]


def _logged(log: Path, tally: Tally) -> None:
    """Search the server's log for unexpected entries."""
    lines = log.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if "ClientDisconnect" in line:  # a request in progress when the attack ended
            continue
        if '"event_loop_blocked"' in line:
            turn = json.loads(line)
            tally.long_turns += 1 + turn["unlogged"]
            if turn["cpu_s"] - turn["collection_s"] > TURN_S:
                tally.faults.append(f"a turn of the event loop took {turn['cpu_s']} s of CPU: {'; '.join(turn['running'])}")
        if "unexpectedly" in line or "Traceback" in line or "unhandled" in line.lower():
            tally.faults.append("log: " + "\n".join(lines[number : number + 40])[:3000])


def main() -> int:
    """Read the arguments and run."""
    if sys.argv[1:2] == ["--watch"]:
        watch_in_a_process(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=4, help="attackers")
    given = parser.parse_args()
    return asyncio.run(attack(given.minutes, given.seed, given.at_once))


if __name__ == "__main__":
    raise SystemExit(main())
