"""A gate before a database: every change a manager commits to PostgreSQL has a name, and one of them can be stopped.

    gate = WriteGate(database.conninfo)
    gate.install()                                    # once the manager has made its tables
    gate.arm("update services (creating -> ready)")   # the next transaction that does this waits in its COMMIT
    gate.reached()
    manager.kill()
    gate.settle(kept=False)                           # it never happened; True: it did, and nobody heard of it

Triggers do it, so nothing of the product knows. A transaction is known by all that it changed, in order; what only
moves a clock is no change. `steps` lists what was committed since `listen`.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

# What tells how far a row has come. Tables that are not here hold no step of a story: notes, quotas, cursors.
STATES: Mapping[str, tuple[str, ...]] = {
    "services": ("phase",),
    "jobs": ("status", "phase"),
    "buckets": ("phase",),
    "operations": ("state",),
    "delegations": ("phase",),
    "receipts": (),
    "lineages": ("state",),
    "audit": ("action",),
    "uploads": (),
    "users": (),
}
_CLOCKS = ("version", "heard", "updated", "modified")
_KEY = 7_462_001  # of the lock at which a transaction waits
PATIENCE = 30.0
_PAUSE = 0.01
_WAITING = f"""
select pid from pg_locks where locktype = 'advisory' and objid = {_KEY} and not granted
    and database = (select oid from pg_database where datname = current_database())
"""

_INSTALL = """
create schema gate;
create table gate.armed (step text not null, passes integer not null);
create table gate.seen (number bigserial primary key, step text not null);

create function gate.note() returns trigger language plpgsql as $$
declare
    was jsonb := case when tg_op = 'INSERT' then '{}' else to_jsonb(old) end;
    is_now jsonb := case when tg_op = 'DELETE' then '{}' else to_jsonb(new) end;
    state_was text := (select coalesce(string_agg(was ->> name, ' '), '') from unnest(tg_argv) name);
    state_now text := (select coalesce(string_agg(is_now ->> name, ' '), '') from unnest(tg_argv) name);
    changed text;
    said text;
begin
    if tg_op = 'INSERT' then
        said := state_now;
    elsif tg_op = 'DELETE' then
        said := state_was;
    elsif state_was <> state_now then
        said := state_was || ' -> ' || state_now;
    else
        select string_agg(key, ' ' order by key) into changed from jsonb_each(is_now)
            where value is distinct from was -> key and key <> all ({clocks});
        if changed is null then
            return null;
        end if;
        said := trim(state_now || ': ' || changed);
    end if;
    said := lower(tg_op) || ' ' || tg_table_name || case said when '' then '' else ' (' || said || ')' end;
    perform set_config('gate.said', concat_ws(' + ', nullif(current_setting('gate.said', true), ''), said), true);
    return null;
end $$;

create function gate.hold() returns trigger language plpgsql as $$
declare
    said text := coalesce(current_setting('gate.said', true), '');
    left_over integer;
begin
    if said = '' then
        return null;  -- another row of the same transaction has spoken for all
    end if;
    perform set_config('gate.said', '', true);
    insert into gate.seen (step) values (said);
    update gate.armed set passes = passes - 1 where position(step in said) > 0 returning passes into left_over;
    if left_over = 0 then
        perform pg_advisory_xact_lock({key});
    end if;
    return null;
end $$;
"""
_WATCH = """
create trigger gate_note after insert or update or delete on {table} for each row execute function gate.note({states});
create constraint trigger gate_hold after insert or update or delete on {table}
    deferrable initially deferred for each row execute function gate.hold();
"""


@dataclass(slots=True)
class WriteGate:
    """Of one database. Tests use it from one thread."""

    conninfo: str
    _link: psycopg.Connection[Any] | None = None
    _held: int = 0  # the server's process that waits

    def install(self) -> None:
        """The tables have to be there."""
        self._link = psycopg.connect(self.conninfo, autocommit=True, connect_timeout=10)
        clocks = "array[" + ", ".join(f"'{name}'" for name in _CLOCKS) + "]"
        self._link.execute(_INSTALL.replace("{clocks}", clocks).replace("{key}", str(_KEY)))
        for table, states in STATES.items():
            self._link.execute(_WATCH.format(table=table, states=", ".join(f"'{name}'" for name in states)))

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def listen(self) -> None:
        """From now on."""
        self._ask("truncate gate.seen")

    def steps(self) -> list[str]:
        return [str(row[0]) for row in self._ask("select step from gate.seen order by number")]

    def rows(self, query: str, *given: str) -> list[tuple[Any, ...]]:
        """What the manager has written down."""
        return self._ask(query, *given)

    def arm(self, step: str, nth: int = 1) -> None:
        """The next transaction that does this, or the `nth` from now, waits before it is committed."""
        self._ask(f"select pg_advisory_lock({_KEY})")
        self._ask("insert into gate.armed values (%s, %s)", step, nth)

    def reached(self, seconds: float = PATIENCE) -> None:
        """Waits until it waits."""
        end = time.monotonic() + seconds
        while not (found := self._ask(_WAITING)):
            if time.monotonic() > end:
                armed = [row[0] for row in self._ask("select step from gate.armed")]
                raise AssertionError(f"nobody came to {armed} within {seconds:g} s, but to {self.steps()}")
            time.sleep(_PAUSE)
        self._held = int(found[0][0])

    def settle(self, *, kept: bool) -> None:
        """Whoever waited for the answer is dead: what was held is committed all the same, or never was."""
        if not kept:
            self._ask("select pg_terminate_backend(%s)", self._held)
            self._await_gone()
        self.open()
        self._await_gone()

    def open(self) -> None:
        """Nobody is held any more."""
        self._ask("select pg_advisory_unlock_all()")
        self._ask("truncate gate.armed")

    def _await_gone(self) -> None:
        end = time.monotonic() + PATIENCE
        while self._ask("select pid from pg_stat_activity where pid = %s", self._held):
            assert time.monotonic() < end, "the server keeps the dead manager's session"
            time.sleep(_PAUSE)

    def _ask(self, query: str, *given: str | int) -> list[tuple[Any, ...]]:
        assert self._link is not None, "install it first"
        cursor = self._link.execute(query, given)
        return cursor.fetchall() if cursor.description else []
