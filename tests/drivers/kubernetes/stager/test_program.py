"""Does a job's stager believe what its script put where the script's end is written, or read anything else for it?"""

from drivers.kubernetes.stager.pod import carried
from hansa.drivers.kubernetes.stager import paper
from hansa.drivers.kubernetes.stager.paper import Told

_WAITING = "while :; do sleep 0.1; done"


def test_how_a_script_ended_is_heard() -> None:
    assert carried("true", "echo x > /job/output/x; exit 3") == [Told(), Told(left=True)]


def test_what_is_no_end_of_a_script_is_not_read_as_one() -> None:
    ways = ("ln -s /hansa/order/order.json", "ln -s /dev/zero", "mkfifo", "mkdir", "echo nonsense >")
    for told in carried(*(f"{way} {paper.END}; {_WAITING}" for way in ways)):
        assert paper.END in told.error


def test_what_the_stager_noted_is_out_of_a_scripts_reach() -> None:
    ways = ("echo nonsense >", """echo '{"error": "forged"}' >""", "ln -s /dev/zero", "mkfifo", "mkdir")
    places = ("/job/.hansa-staged", "/job/.hansa-mounted")
    scripts = ["; ".join(f"{way} {place}" for place in places) for way in ways]
    assert carried(*scripts) == [Told()] * len(ways)
