"""What the pages on Kubernetes need beside a cluster: Helm, as the chart's own tests get it."""

from deploy.conftest import helm

__all__ = ["helm"]
