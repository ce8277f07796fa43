"""Alice, who does what Hypothesis drew and keeps everything she saw: answers, logs, results."""

import contextlib
import http.client
import json
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from journeys.attacks.fuzz import belongings
from journeys.attacks.fuzz.steps import Call, Request, Service, Step, StoreCall
from journeys.attacks.fuzz.values import OWN_BUCKET, Facts, filled
from journeys.bad_input import Answer, Caller
from journeys.objects import store_of
from journeys.waiting import all_jobs
from real.manager import Manager

PENDING_SECONDS, RUNNING_SECONDS = 0.5, 10.0
LARGEST = 1 << 20


@dataclass(frozen=True)
class Seen:
    where: str
    text: str
    status: int = 0


@dataclass
class Alice:
    manager: Manager
    client: httpx.Client
    facts: Facts
    seen: list[Seen] = field(default_factory=list)
    ran: Counter[str] = field(default_factory=Counter)  # jobs that came to an end, by the word of their script
    _jobs: dict[str, set[str]] = field(default_factory=dict)  # accepted ones, by service
    _scripts: dict[str, str] = field(default_factory=dict)  # the word that each of her services began with

    def __post_init__(self) -> None:
        self._authorization = self.client.headers["authorization"]
        self._store = store_of(self.client)

    def close(self) -> None:
        self._store.close()

    def does(self, step: Step, number: int) -> None:
        match step:
            case Service():
                self._makes(step, f"fuzz-{number}")
            case Request():
                self._asks(step)
            case StoreCall():
                self._stores(step)

    def _makes(self, step: Service, name: str) -> None:
        definition = {"name": name, **filled(step.definition, self.facts)}
        made = self._sends("POST", "/system/services", _spelled(definition, step.spelling))
        if step.changed is not None and made.status == 201:
            changed = {**filled(step.changed, self.facts), "name": definition["name"]}
            self._sends("PUT", "/system/services", _spelled(changed, step.spelling))
        if made.status == 201:
            self._scripts[str(definition["name"])] = str(step.definition.get("script", ""))
            for call in step.calls:
                self._calls(call, str(definition["name"]))

    def _calls(self, call: Call, own: str) -> None:
        name = filled(call.to, self.facts) or own
        authorization = self._authorization
        if call.by == "token":
            shown = self.client.get(f"/system/services/{own}")
            authorization = f"Bearer {shown.json()['token']}"
        path = f"/system/services/{name}/exposed/" if call.door == "exposed" else f"/{call.door}/{name}"
        body = filled(call.body, self.facts).encode()
        answer = self._sends("POST", path, body, authorization, filled(call.headers, self.facts))
        if call.door == "job" and answer.status == 201:
            self._jobs.setdefault(name, set()).add(_header(answer, "x-hansa-job"))

    def _asks(self, step: Request) -> None:
        path, query = filled(step.path, self.facts), urllib.parse.urlencode(filled(step.query, self.facts))
        target = urllib.parse.quote(path, safe="/%@:*$()") + (f"?{query}" if query else "")
        body = b"" if step.body is None else json.dumps(filled(step.body, self.facts)).encode()
        answer = self._sends(step.method, target, body, headers=filled(step.headers, self.facts))
        if answer.status == 200 and path.endswith("/presign"):
            self._visits(answer.text)

    def _visits(self, answer: str) -> None:
        """A link that was given out, for what it is good for."""
        with contextlib.suppress(ValueError, KeyError):
            link = json.loads(answer)["url"]
            for method, content in (("GET", b""), ("PUT", b"planted")):
                told = httpx.request(method, link, content=content, trust_env=False, timeout=20)
                self.seen.append(Seen(f"{method} of a link", told.text[:LARGEST]))

    def _stores(self, step: StoreCall) -> None:
        bucket, key = filled(step.bucket, self.facts), filled(step.key, self.facts)
        where = {"Bucket": bucket, "Key": key}
        does: dict[str, Callable[[], Any]] = {
            "get": lambda: self._store.get_object(**where)["Body"].read(LARGEST),
            "put": lambda: self._store.put_object(**where, Body=b"planted"),
            "copy": lambda: self._store.copy_object(
                Bucket=OWN_BUCKET, Key="copied", CopySource={"Bucket": bucket, "Key": key}
            ),
            "list": lambda: self._store.list_objects_v2(Bucket=bucket),
            "delete": lambda: self._store.delete_object(**where),
            "acl": lambda: self._store.put_bucket_acl(Bucket=bucket, ACL="public-read-write"),
        }
        # boto3 itself refuses some of the names
        with contextlib.suppress(ClientError, BotoCoreError):
            self.seen.append(Seen(f"store: {step}", str(does[step.verb]())))

    def _sends(
        self, method: str, target: str, body: bytes, authorization: str = "", headers: dict[str, str] | None = None
    ) -> Answer:
        caller = Caller(self.manager, authorization or self._authorization)
        try:
            given = {name.replace("-", "_"): text for name, text in (headers or {}).items()}
            answer = caller.ask(method, target, body, **given)
        except (http.client.HTTPException, OSError) as error:
            raise AssertionError(f"{method} {target} got no answer: {error!r}") from error
        finally:
            caller.close()
        said = answer.body.decode(errors="replace") + "".join(
            f"\n{name}: {text}" for name, text in answer.headers.items()
        )
        self.seen.append(Seen(f"{method} {target}", said[:LARGEST], answer.status))
        return answer

    def waits(self) -> None:
        """For her jobs to end, and reads what they printed and left. Some wait for ever: no machine is that large."""
        started = time.monotonic()
        for name, jobs in self._jobs.items():
            while True:
                there = all_jobs(self.client, name)
                assert jobs <= set(there), f"jobs that are not their submitter's: {sorted(jobs - set(there))}"
                states = {there[job]["status"] for job in jobs}
                spent = time.monotonic() - started
                waits = ("Running" in states and spent < RUNNING_SECONDS) or (
                    "Pending" in states and spent < PENDING_SECONDS
                )
                if not waits:
                    break
                time.sleep(0.02)
            for job in jobs:
                if there[job]["status"] in ("Succeeded", "Failed"):
                    self.ran[self._scripts.get(name, "")] += 1
                log = self.client.get(f"/system/logs/{name}/{job}")
                self.seen.append(Seen(f"log of {job}", log.text[:LARGEST], log.status_code))
        self._reads_results()

    def _reads_results(self) -> None:
        for bucket in self.client.get("/system/buckets").json() or []:
            name = bucket["bucket_name"]
            with contextlib.suppress(ClientError):
                for one in self._store.list_objects_v2(Bucket=name).get("Contents", [])[:100]:
                    with contextlib.suppress(ClientError):
                        content = self._store.get_object(Bucket=name, Key=one["Key"])["Body"].read(LARGEST)
                        self.seen.append(Seen(f"object {name}/{one['Key']}", content.decode(errors="replace")))

    def settles_in(self) -> None:
        """What is hers by right: a bucket with an input. To empty it is much faster than to make a new one, but the
        embedded store lets nobody delete a key that begins with `*`."""
        mine = {"bucket_name": OWN_BUCKET, "visibility": "private"}
        if self.client.put("/system/buckets", json=mine).status_code != 204 or not self._empties():
            self.client.delete(f"/system/buckets/{OWN_BUCKET}")
            assert self.client.post("/system/buckets", json=mine).status_code == 201
        self._store.put_object(Bucket=OWN_BUCKET, Key="in/x", Body=b"alice's own")

    def _empties(self) -> bool:
        with contextlib.suppress(ClientError):
            for one in self._store.list_objects_v2(Bucket=OWN_BUCKET).get("Contents", []):
                self._store.delete_object(Bucket=OWN_BUCKET, Key=one["Key"])
            return True
        return False

    def tidies_up(self) -> None:
        """Nothing else is left, so that the next example begins like the first."""
        belongings.removed(self.client, "alice@test", keep=(OWN_BUCKET,))
        self._jobs.clear()
        self._scripts.clear()
        self.seen.clear()
        self.settles_in()


def _header(answer: Answer, name: str) -> str:
    return {known.lower(): text for known, text in answer.headers.items()}[name]


def _spelled(definition: dict[str, Any], spelling: str) -> bytes:
    """The wire takes keys in any case, and JSON does not forbid a key twice."""
    if spelling == "upper":
        return json.dumps({key.upper(): item for key, item in definition.items()}).encode()
    text = json.dumps(definition)
    if spelling == "twice":
        harmless = '{"input": [], "output": [], "annotations": {}, "STORAGE_PROVIDERS": {}, "Mount": {}, '
        text = harmless + text[1:]
    return text.encode()
