"""The figures a manager shows at `/metrics`; rooms count, the door prints."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Telemetry:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.jobs_ended = Counter("hansa_jobs_ended", "Jobs by how they ended", ["status"], registry=self.registry)
        self.jobs_waiting = Gauge("hansa_jobs_waiting", "Jobs that wait for room", registry=self.registry)
        self.jobs_running = Gauge("hansa_jobs_running", "Jobs that run", registry=self.registry)
        self.wait_seconds = Histogram(
            "hansa_job_wait_seconds",
            "From acceptance to start",
            buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600, 3600),
            registry=self.registry,
        )
        self.services = Gauge("hansa_services", "Services of this cluster", registry=self.registry)
        self.cpu_promised = Gauge("hansa_cpu_promised_millicores", "CPU held by runs", registry=self.registry)
        self.memory_promised = Gauge("hansa_memory_promised_bytes", "Memory held by runs", registry=self.registry)
