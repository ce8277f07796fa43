"""The figures a manager or a hub shows at `/metrics`; rooms count, the door prints."""

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
        self.heartbeats = Counter(
            "hansa_membership_heartbeats", "Heartbeats sent to the hub", ["outcome"], registry=self.registry
        )
        self.hub_silence = Gauge(
            "hansa_membership_hub_silent_seconds", "Since the hub last answered", registry=self.registry
        )


class HubTelemetry:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.clusters = Gauge("hansa_hub_clusters", "Clusters by state", ["state"], registry=self.registry)
        self.heartbeats = Counter("hansa_hub_heartbeats", "Heartbeats heard", registry=self.registry)
        self.age = Gauge("hansa_hub_age_seconds", "Since memory was in step with the database", registry=self.registry)
