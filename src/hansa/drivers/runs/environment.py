"""What does a script find in its environment? Pure: from an order to variables, files and texts.

The service's own variables and secrets go to the process directly. What differs from call to call is
written to a file that the first shell reads (`call_file`): so a worker can be started before its call
comes, and an event may be larger than what a launch can carry.

A script gets its service's token, as in OSCAR: it belongs to the owner, who wrote the script. It never gets
keys of a store, nor anything else the manager holds.
"""

import contextlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import yaml

from hansa import services
from hansa.services import events

JOB = "/job"
CONFIG = "/oscar/config"
_CALL = ".call"
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)  # ten times quicker, where it is built in
_LONGEST_NAME = 200  # bytes; a file system takes 255


@dataclass(frozen=True, slots=True)
class Places:
    """Where the script sees its folders."""

    job: str
    config: str

    @property
    def script(self) -> str:
        return f"{self.job}/script.sh"

    @property
    def input(self) -> str:
        return f"{self.job}/input"

    @property
    def output(self) -> str:
        return f"{self.job}/output"


def service_variables(order: services.RunOrder, places: Places, node: str) -> dict[str, str]:
    """The same for every call of the service; a user cannot rename what is ours."""
    service = order.service
    base = f"/system/services/{service.name}/exposed" if service.exposed else ""
    given = {**service.environment.variables, **order.secrets}
    ours = {
        "TMP_INPUT_DIR": places.input,
        "TMP_OUTPUT_DIR": places.output,
        "OSCAR_SERVICE_NAME": service.name,
        "OSCAR_SERVICE_TOKEN": service.token,
        "OSCAR_SERVICE_BASE_PATH": base,
        "RESOURCE_ID": node,
    }
    return {name: value.replace("\0", "") for name, value in (given | ours).items()}


def call_variables(
    order: services.RunOrder, given: events.ObjectInput | events.BytesInput, places: Places
) -> dict[str, str]:
    """What this one call is about."""
    variables = {"JOB_UUID": order.name, "INPUT_FILE_PATH": f"{places.input}/{input_name(given)}"}
    if isinstance(given, events.ObjectInput):
        variables["STORAGE_OBJECT_KEY"] = f"{given.bucket}/{given.key}"
        variables["EVENT_TIME"] = given.time
        if order.service.file_stage_in:
            del variables["INPUT_FILE_PATH"]  # the script fetches the object itself
    if len(order.event) <= events.LARGEST_VARIABLE:
        # bytes that are no text cannot stand in a variable; they are in the input file
        with contextlib.suppress(UnicodeDecodeError):
            variables["EVENT"] = order.event.decode()
    return variables


def call_file(variables: Mapping[str, str]) -> tuple[str, str]:
    """Name and text of the file that `command` reads."""
    lines = [f"export {name}={shlex.quote(value.replace(chr(0), ''))}\n" for name, value in variables.items()]
    return _CALL, "".join(lines)


def command(places: Places) -> tuple[str, ...]:
    """Reads the call, then becomes the script's shell."""
    return ("/bin/sh", "-c", f'. ./{_CALL} && exec /bin/sh "$0"', places.script)


def input_name(given: events.ObjectInput | events.BytesInput) -> str:
    """The input file's name: the last step of the key, where that can be a file's name."""
    if isinstance(given, events.BytesInput):
        return "event-file"
    name = given.key.rstrip("/").rpartition("/")[2].replace("\0", "")
    if name in ("", ".", ".."):
        return "event-file"
    if len(name.encode()) > _LONGEST_NAME:  # its end says what kind of file it is
        name = name.encode()[-_LONGEST_NAME:].decode(errors="ignore")
    return name


def definition_text(service: services.Service) -> str:
    """The service as `function_config.yaml` shows it to its script: everything but what is secret."""
    tree = msgspec.to_builtins(service)
    tree["environment"]["secrets"] = dict.fromkeys(tree["environment"]["secrets"], "")
    for kind in tree["storage_providers"].values():
        for config in kind.values():
            for field in config:
                if field not in _OPEN_FIELDS:
                    config[field] = "hidden"
    for cluster in tree["clusters"].values():
        cluster["auth_password"] = ""
    for member in (tree["federation"] or {}).get("members", ()):
        member["headers"] = dict.fromkeys(member["headers"] or {}, "")
    return yaml.dump(tree, Dumper=_DUMPER, sort_keys=False, allow_unicode=True)


# What a provider's configuration may show; anything we do not know could be a key.
_OPEN_FIELDS = frozenset(
    {"endpoint", "verify", "region", "hostname", "oneprovider_host", "space", "host", "rse", "account"}
)
