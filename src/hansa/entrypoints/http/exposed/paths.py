"""Which addresses are tenants' own? Everything below a service's base path."""

BASE = "/system/services/{name}/exposed"
_START = "/system/services/"


def base_of(service: str) -> str:
    return f"{_START}{service}/exposed"


def service_in(path: str) -> str:
    """The service whose page this path names, else nothing. A service that is itself named "exposed" has none at
    `/system/services/exposed/stop`."""
    if not path.startswith(_START):
        return ""
    name, _, rest = path[len(_START) :].partition("/")
    return name if rest == "exposed" or rest.startswith("exposed/") else ""


def auth_in(path: str) -> str:
    """The service whose `/auth` this path is, else nothing."""
    if not (path.startswith(_START) and path.endswith("/auth")):
        return ""
    name = path[len(_START) : -len("/auth")]
    return "" if "/" in name else name
