//! What operators measure, in Prometheus' text format.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeLabelValue, EncodeMetric as _, LabelValueEncoder,
};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use switchboard_bus::Bus;
use switchboard_coordination::Coordination;
use switchboard_exchange::Stats;
use switchboard_schedule::{KindStats, Schedules, Stats as ScheduleStats};

/// What `GET /metrics` answers in.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The counters of all doors.
pub(crate) struct Metrics {
    registry: Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<ToolLabels, Histogram>,
    gauges: Gauges,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    tool: &'static str,
    outcome: CallOutcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ToolLabels {
    tool: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum CallOutcome {
    /// With a result.
    Ok,
    /// With a result that is an error.
    Error,
    /// There is no such tool.
    Unknown,
    /// The caller may not use it.
    Denied,
    /// The server was full or stopping.
    Refused,
    /// The tool panicked.
    Panicked,
}

impl EncodeLabelValue for CallOutcome {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        let text = match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
            Self::Refused => "refused",
            Self::Panicked => "panicked",
        };
        text.encode(encoder)
    }
}

/// What there is of something at the moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauges {
    pub(crate) connections: Gauge,
    pub(crate) calls_running: Gauge,
    pub(crate) sessions: Gauge,
    pub(crate) sse_sessions: Gauge,
    pub(crate) watchers: Gauge,
    resident: Gauge,
}

/// One more of something, for as long as this lives.
#[derive(Debug)]
pub(crate) struct OneMore(Gauge);

impl OneMore {
    pub(crate) fn of(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OneMore {
    fn drop(&mut self) {
        self.0.dec();
    }
}

const CALL_SECONDS: [f64; 13] =
    [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0];

impl Metrics {
    pub(crate) fn new(coordination: &Coordination, bus: &Bus, schedules: &Schedules) -> Self {
        let mut registry = Registry::default();
        let requests = Family::default();
        let calls = Family::default();
        let call_seconds =
            Family::new_with_constructor((|| Histogram::new(CALL_SECONDS)) as fn() -> Histogram);
        let gauges = Gauges::default();
        let started = Gauge::<i64>::default();
        started.set(seconds_since_epoch());

        registry.register("http_requests", "Requests answered", requests.clone());
        registry.register("tool_calls", "Tool calls ended", calls.clone());
        registry.register_with_unit(
            "tool_call",
            "How long a tool call took",
            Unit::Seconds,
            call_seconds.clone(),
        );
        registry.register("connections", "Open connections", gauges.connections.clone());
        registry.register("tool_calls_running", "Tool calls that run or wait", gauges.calls_running.clone());
        registry.register("mcp_sessions", "Open MCP sessions", gauges.sessions.clone());
        registry.register(
            "mcp_sse_sessions",
            "Open sessions of the SSE transport",
            gauges.sse_sessions.clone(),
        );
        registry.register(
            "watchers",
            "Clients that follow /api/events, and subscriptions of MCP clients",
            gauges.watchers.clone(),
        );
        registry.register("process_resident_memory_bytes", "Memory of this process", gauges.resident.clone());
        registry.register("process_start_time_seconds", "When this process started", started);
        registry.register_collector(Box::new(Projects(coordination.clone())));
        registry.register_collector(Box::new(Published(bus.clone())));
        registry.register_collector(Box::new(Scheduled(schedules.clone())));
        Self { registry: Mutex::new(registry), requests, calls, call_seconds, gauges }
    }

    pub(crate) fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    pub(crate) fn answered(&self, route: &'static str, status: u16) {
        self.requests.get_or_create(&RequestLabels { route, status }).inc();
    }

    pub(crate) fn called(&self, tool: &'static str, outcome: CallOutcome, took: Duration) {
        self.calls.get_or_create(&CallLabels { tool, outcome }).inc();
        self.call_seconds.get_or_create(&ToolLabels { tool }).observe(took.as_secs_f64());
    }

    /// All metrics as text.
    pub(crate) fn text(&self) -> Result<String, fmt::Error> {
        self.gauges.resident.set(resident_bytes().unwrap_or(0));
        let mut text = String::with_capacity(16 << 10);
        encode(&mut text, &self.registry.lock().unwrap_or_else(PoisonError::into_inner))?;
        Ok(text)
    }
}

/// What the exchange of the projects counts by itself.
struct Projects(Coordination);

impl fmt::Debug for Projects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Projects")
    }
}

impl Collector for Projects {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let exchange = self.0.exchange();
        encode_stats(&mut encoder, "project", "projects", exchange.stats())?;
        let live = ConstGauge::new(i64::try_from(exchange.live_streams()).unwrap_or(i64::MAX));
        live.encode(encoder.encode_descriptor(
            "projects_live",
            "Projects in memory",
            None,
            live.metric_type(),
        )?)
    }
}

/// What the exchange of the schedules counts by itself.
struct Scheduled(Schedules);

impl fmt::Debug for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scheduled")
    }
}

impl Collector for Scheduled {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        encode_stats(&mut encoder, "schedule", "schedules", self.0.exchange().stats())?;
        encode_kinds(
            &mut encoder,
            self.0.stats(),
            "schedule_deliveries",
            "Deliveries that succeeded",
            |kind| &kind.delivered,
        )?;
        let failed = "Attempts to deliver that failed, also those that are tried again";
        encode_kinds(&mut encoder, self.0.stats(), "schedule_failures", failed, |kind| &kind.failed)?;
        let late = "Attempts to deliver that began more than a second after their time";
        encode_kinds(&mut encoder, self.0.stats(), "schedule_late", late, |kind| &kind.late)?;
        let late_ms = "How late attempts to deliver began, all together";
        encode_kinds(&mut encoder, self.0.stats(), "schedule_lateness_milliseconds", late_ms, |kind| {
            &kind.late_ms
        })
    }
}

/// What is counted by kind of target.
fn encode_kinds(
    encoder: &mut DescriptorEncoder<'_>,
    stats: &ScheduleStats,
    name: &str,
    help: &str,
    count: impl Fn(&KindStats) -> &AtomicU64,
) -> Result<(), fmt::Error> {
    let family = Family::<KindLabels, Counter>::default();
    for (kind, stats) in stats.iter() {
        family.get_or_create(&KindLabels { kind }).inc_by(count(stats).load(Relaxed));
    }
    family.encode(encoder.encode_descriptor(name, help, None, family.metric_type())?)
}

/// What an exchange counts, as `{prefix}_commands` and so on.
fn encode_stats(
    encoder: &mut DescriptorEncoder<'_>,
    prefix: &str,
    machines: &str,
    stats: &Stats,
) -> Result<(), fmt::Error> {
    for (name, help, count) in [
        ("commands", format!("Commands that {machines} answered"), &stats.commands),
        ("appends", format!("Entries that {machines} appended to the journal"), &stats.appends),
        (
            "conflicts",
            format!("Appends of {machines} that lost a race against another node"),
            &stats.conflicts,
        ),
        ("snapshots", format!("Snapshots of {machines} that were begun"), &stats.snapshots),
    ] {
        let (name, counter) = (format!("{prefix}_{name}"), ConstCounter::new(count.load(Relaxed)));
        counter.encode(encoder.encode_descriptor(&name, &help, None, counter.metric_type())?)?;
    }
    Ok(())
}

/// What the bus counts by itself.
#[derive(Debug)]
struct Published(Bus);

impl Collector for Published {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let stats = self.0.stats();
        let published = ConstCounter::new(stats.published);
        let name = "bus_events_published";
        let help = "Events that were published";
        published.encode(encoder.encode_descriptor(name, help, None, published.metric_type())?)?;
        for (name, help, value) in [
            ("bus_events_kept", "Published events that can be read", stats.kept),
            ("bus_bytes_kept", "Bytes of topics and data of events that can be read", stats.kept_bytes),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        Ok(())
    }
}

fn seconds_since_epoch() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// What the operating system says this process keeps in memory; none where it does not say so in `/proc`.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes * 1_024)
}
