"""Whoever stops following what Kubernetes shows leaves nothing open, in whatever moment it is."""

import asyncio
import gc

import pytest

from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from real.kubernetes.cluster import KubernetesCluster


@pytest.mark.parametrize("moment", [0.0, 0.005, 0.01, 0.02, 0.05, 0.2])
async def test_no_connection_is_left_open(kubernetes_api: KubernetesCluster, moment: float) -> None:
    """What is left is told by the garbage collector, and a warning is an error here."""
    for _ in range(3):
        api = Connection.open(kubernetes_api.access.kubeconfig)
        board = Board(api.client, "nobody")
        board.start()
        await asyncio.sleep(moment)
        await board.close()
        await api.close()
    gc.collect()
