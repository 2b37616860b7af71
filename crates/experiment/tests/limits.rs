//! What limits mean: of flows, of sinks, of bundles and of their connections.

mod common;

use common::Beside;
use trunkline_core::{Duration, Rate, Ratio};
use trunkline_experiment::{Experiment, Figure, Limit, Operator, Subject};
use trunkline_metrics::figures;
use trunkline_metrics::{
    BundleSummary, ClassSummary, Counts, DelaySummary, FlowSummary, Margin, MarginSummary, QualitySummary,
    RepetitionSummary, SinkSummary, Spread, VoicePathSummary,
};

const FILE: &str = r#"name = "limits"
duration = "1 s"

[hosts]
a = {}
b = {}
c = {}

[link.first]
between = ["a", "b"]
rate = "2 Mbit/s"

[link.second]
between = ["a", "c"]
rate = "2 Mbit/s"

[flow.bulk]
from = "a"
to = "b"
transport = "tcp"
source = { kind = "bulk", message = "8 KiB" }
[flow.voice]
from = "a"
to = TO
transport = "udp"
source = { kind = "voice", samples = 80 }
priority = 0
playback = { kind = "fifo", depth = 4096 }
"#;

fn parse(to: &str, more: &str) -> Result<Vec<Limit>, String> {
    let text = format!("{}{more}\n", FILE.replace("TO", to));
    Experiment::parse(&text, "x.toml", &Beside).map(|file| file.limits).map_err(|e| e.to_string())
}

fn limits(to: &str, more: &str) -> Vec<Limit> {
    parse(to, more).unwrap_or_else(|e| panic!("{e}"))
}

/// The limits' figures with this of the second flow, whether they are kept.
fn kept(limits: &[Limit], voice: FlowSummary) -> Vec<Option<bool>> {
    let flows =
        vec![FlowSummary { members: 1, ..FlowSummary::default() }, FlowSummary { members: 1, ..voice }];
    kept_in(limits, &RepetitionSummary { flows, ..RepetitionSummary::default() })
}

fn kept_in(limits: &[Limit], summary: &RepetitionSummary) -> Vec<Option<bool>> {
    let is_kept = |limit: &Limit| match limit.figure(summary) {
        Figure::Value(value) => Some(limit.operator.holds(value, limit.bound)),
        Figure::NotMeasured | Figure::NotApplicable => None,
    };
    limits.iter().map(is_kept).collect()
}

#[test]
fn of_flows() {
    let limits =
        limits("\"b\"", "[limits]\n\"flow.voice.loss\" = \"<= 1 %\"\nflow.voice.latency.p99 = \"< 10 ms\"");
    let flow = FlowSummary {
        counts: Counts { sent: 100, ..Counts::default() },
        loss: Ratio::new(0.01).unwrap(),
        latency: Some(DelaySummary { p99: Duration::from_millis(10), ..DelaySummary::default() }),
        ..FlowSummary::default()
    };
    assert_eq!(kept(&limits, flow), [Some(true), Some(false)]);
    // Where nothing was measured, nothing is kept or broken.
    assert_eq!(kept(&limits, FlowSummary::default()), [None, None]);
    let none = RepetitionSummary { flows: vec![FlowSummary::default(); 2], ..RepetitionSummary::default() };
    assert!(limits.iter().all(|limit| limit.figure(&none) == Figure::NotApplicable));
    assert!(limits.iter().all(|limit| limit.figure(&RepetitionSummary::default()) == Figure::NotMeasured));
}

#[test]
fn of_one_of_several_sinks() {
    let to = "[\"b\", { host = \"c\", join = \"0 s\" }]";
    let limits = limits(to, "[limits]\n\"flow.voice.sink.c.latency.p999\" = \"< 10 ms\"");
    let sink = |sink: &str, millis| {
        let latency = DelaySummary { p999: Duration::from_millis(millis), ..DelaySummary::default() };
        SinkSummary { sink: sink.to_owned(), latency: Some(latency), ..SinkSummary::default() }
    };
    let flow = |sinks| FlowSummary { sinks, ..FlowSummary::default() };
    assert_eq!(kept(&limits, flow(vec![sink("b", 10), sink("c", 9)])), [Some(true)]);
    assert_eq!(kept(&limits, flow(vec![sink("b", 9), sink("c", 10)])), [Some(false)]);
    assert_eq!(kept(&limits, flow(vec![sink("b", 9)])), [None]);

    for (limit, problem) in [
        ("flow.voice.sink.d.loss = \"< 1 %\"", "the flow `voice` has no sink `d`; known: `b` and `c`"),
        (
            "flow.voice.sink.c.fairness = \"> 0.5\"",
            "a sink has no figure `fairness`; known: `throughput`, `voice-channels`",
        ),
    ] {
        let error = parse(to, &format!("[limits]\n{limit}")).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}

/// A limit that no measurement can keep, or none can break, says nothing.
#[test]
fn a_limit_can_hold_and_can_break() {
    for (limit, problem) in [
        (
            "mos\" = \">= 4.6\"",
            "`>= 4.6` can never hold; expected a bound within the range of the figure, from 1 to 4.5",
        ),
        ("mos\" = \"> 4.5\"", "`> 4.5` can never hold"),
        ("mos\" = \"< 1\"", "`< 1` can never hold"),
        ("mos\" = \">= 1\"", "`>= 1` always holds"),
        ("r\" = \"> 101\"", "from 0 to 100"),
        ("fairness\" = \"> 1.2\"", "from 0 to 1"),
        (
            "loss\" = \"<= 100 %\"",
            "`<= 100 %` always holds; expected a bound within the range of the figure, from 0 % to 100 %",
        ),
        ("loss\" = \"> 100 %\"", "`> 100 %` can never hold"),
        ("loss\" = \"< 0 %\"", "`< 0 %` can never hold"),
        (
            "latency.p99\" = \">= 0 s\"",
            "`>= 0 s` always holds; expected a bound within the range of the figure, 0 or more",
        ),
        ("underflows\" = \"< 0\"", "`< 0` can never hold"),
    ] {
        let error = parse("\"b\"", &format!("[limits]\n\"flow.voice.{limit}")).unwrap_err();
        assert!(error.contains(problem) && error.starts_with("x.toml:30:"), "{limit}: {error}");
    }
    for limit in [
        "mos\" = \">= 4.5\"",
        "r\" = \"> 0\"",
        "loss\" = \"<= 0 %\"",
        "loss\" = \"< 100 %\"",
        "margin.min\" = \"> 0 s\"",
    ] {
        assert_eq!(limits("\"b\"", &format!("[limits]\n\"flow.voice.{limit}")).len(), 1, "{limit}");
    }
}

#[test]
fn a_margin_may_be_less_than_nothing() {
    let limits = limits("\"b\"", "[limits]\n\"flow.voice.margin.min\" = \">= -2.5 ms\"");
    assert_eq!(limits[0].bound, -0.0025);
    let flow = |nanos| {
        let margin = Some(MarginSummary { min: Margin::from_nanos(nanos), ..MarginSummary::default() });
        let voice_path = Some(VoicePathSummary { margin, ..VoicePathSummary::default() });
        FlowSummary { voice_path, ..FlowSummary::default() }
    };
    assert_eq!(kept(&limits, flow(-2_500_000)), [Some(true)]);
    assert_eq!(kept(&limits, flow(-2_500_001)), [Some(false)]);
    assert_eq!(kept(&limits, FlowSummary::default()), [None]);
}

#[test]
fn of_the_quality_of_a_conversation() {
    let limits = limits(
        "\"b\"",
        "[limits]\nflow.voice.mos = \"> 4.0\"\nflow.voice.r = \"> 80\"\n\
         flow.voice.mouth-to-ear = \"< 150 ms\"\nflow.voice.ppl = \"< 1 %\"",
    );
    let quality = QualitySummary {
        r: 80.0,
        mos: 4.024,
        mouth_to_ear: Some(Duration::from_millis(150)),
        ppl: Ratio::new(0.009).unwrap(),
        ..QualitySummary::default()
    };
    let flow = FlowSummary { quality: Some(quality), ..FlowSummary::default() };
    assert_eq!(kept(&limits, flow), [Some(true), Some(false), Some(false), Some(true)]);
    assert_eq!(kept(&limits, FlowSummary::default()), [None; 4]);
}

const OF_BUNDLE: &str = r#"[bundle.trunk]
flows = ["bulk", "voice"]

[limits]
"bundle.trunk.throughput" = "> 1 Mbit/s"
"bundle.trunk.throughput.network" = "< 1 Mbit/s"
"bundle.trunk.fairness" = "> 0.9"
"bundle.trunk.udp.throughput.min" = "> 62 kbit/s"
"bundle.trunk.udp.loss.mean" = "<= 1 %"
"bundle.trunk.udp.loss.max" = "<= 1 %"
"bundle.trunk.udp.latency.p999.mean" = "< 10 ms"
bundle.trunk.tcp.latency.mean.max = "< 10 ms"
"#;

fn of_bundle() -> RepetitionSummary {
    let voice = ClassSummary {
        transport: "udp".to_owned(),
        members: 2,
        throughput: Some(Spread {
            mean: Rate::from_bits_per_second(63_000),
            min: Rate::from_bits_per_second(62_000),
            max: Rate::from_bits_per_second(64_000),
            members: 2,
        }),
        loss: Some(Spread {
            mean: Ratio::new(0.01).unwrap_or_default(),
            min: Ratio::ZERO,
            max: Ratio::new(0.02).unwrap_or_default(),
            members: 2,
        }),
        latency_p999: Some(Spread {
            mean: Duration::from_millis(9),
            min: Duration::from_millis(8),
            max: Duration::from_millis(10),
            members: 2,
        }),
        ..ClassSummary::default()
    };
    let bundle = BundleSummary {
        members: 3,
        user: Rate::from_bits_per_second(1_000_001),
        fairness: Some(0.9),
        classes: vec![
            ClassSummary { transport: "tcp".to_owned(), members: 1, ..ClassSummary::default() },
            voice,
        ],
        ..BundleSummary::default()
    };
    RepetitionSummary { bundles: vec![bundle], ..RepetitionSummary::default() }
}

#[test]
fn of_bundles_and_of_the_connections_of_a_transport_in_them() {
    let limits = limits("\"b\"", OF_BUNDLE);
    let (kept, broken) = (Some(true), Some(false));
    let expected = [kept, None, broken, broken, kept, broken, kept, None];
    assert_eq!(kept_in(&limits, &of_bundle()), expected);

    let mut without_voice = of_bundle();
    without_voice.bundles[0].classes[1].members = 0;
    assert_eq!(limits[3].figure(&without_voice), Figure::NotApplicable);
    without_voice.bundles[0].classes.pop();
    assert_eq!(limits[3].figure(&without_voice), Figure::NotApplicable);
    assert_eq!(limits[3].figure(&RepetitionSummary::default()), Figure::NotMeasured);
}

#[test]
fn a_transport_of_a_bundle_may_be_one_that_is_swept() {
    let sweep = "[sweep]\n\"flow.voice.transport\" = [\"udp\", \"dccp\"]\n";
    let with = |transport: &str| {
        let limit = format!("\"bundle.trunk.{transport}.loss.max\" = \"< 1 %\"");
        parse("\"b\"", &format!("{sweep}[bundle.trunk]\nflows = [\"voice\"]\n[limits]\n{limit}"))
    };
    assert!(with("udp").is_ok() && with("dccp").is_ok());
    assert!(with("tcp").unwrap_err().contains("the bundle `trunk` has no transport `tcp`"));
}

#[test]
fn they_are_stored_as_they_were_before_bundles_had_any() {
    let stored = r#"{"key":"flow.voice.loss","condition":"< 1 %","flow":1,"sink":null,"metric":"loss","operator":"less","bound":0.01}"#;
    let limit: Limit = serde_json::from_str(stored).unwrap();
    assert_eq!(limit.subject, Subject::Flow { flow: 1, sink: None, metric: figures::flow("loss") });
    assert_eq!((limit.operator, serde_json::to_string(&limit).unwrap().as_str()), (Operator::Less, stored));
    let names = [
        r#""throughput""#,
        r#""network-throughput""#,
        r#""fairness""#,
        r#"{"throughput":"min"}"#,
        r#"{"loss":"mean"}"#,
        r#"{"loss":"max"}"#,
        r#"{"latency-p999":"mean"}"#,
        r#"{"latency-mean":"max"}"#,
    ];
    for (limit, name) in limits("\"b\"", OF_BUNDLE).into_iter().zip(names) {
        let value = serde_json::to_value(&limit).unwrap();
        assert_eq!(value["metric"].to_string(), name);
        let stored = serde_json::to_string(&limit).unwrap();
        assert_eq!(serde_json::from_str::<Limit>(&stored).unwrap(), limit, "{stored}");
    }
    // What this version does not have is never another figure.
    assert!(serde_json::from_str::<Limit>(&stored.replace("\"loss\"", "\"los\"")).is_err());
}

/// Where a flow has no members a limit does not apply: that makes nothing measurable elsewhere.
#[test]
fn a_limit_is_judged_at_points_with_members() {
    let parse = |flow: &str, limit: &str, counts: &str| {
        let text = format!(
            "name = \"never\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
             rate = \"1 Mbit/s\"\n[flow.call]\nfrom = \"a\"\nto = \"b\"\n{flow}\n[bundle.z]\nflows = [\"call\"]\n\
             [sweep]\n\"flow.call.count\" = {counts}\n[limits]\n{limit}\n"
        );
        Experiment::parse(&text, "never.toml", &()).map(|_| ()).map_err(|problems| problems.to_string())
    };
    let voice = "transport = \"udp\"\nsource = \"voice\"";
    let refused = parse(voice, "\"flow.call.silence\" = \"< 1 s\"", "[0, 3]").unwrap_err();
    assert!(refused.contains("this flow has no `playback`"), "{refused}");
    assert_eq!(parse(voice, "\"flow.call.fairness\" = \"> 0.9\"", "[0, 1, 3]"), Ok(()));
    let refused = parse(voice, "\"flow.call.fairness\" = \"> 0.9\"", "[0, 1]").unwrap_err();
    assert!(refused.contains("only one member"), "{refused}");
    let tcp = "transport = \"tcp\"\nsource = \"bulk\"";
    let refused = parse(tcp, "\"bundle.z.tcp.fairness\" = \"> 0.5\"", "[1]").unwrap_err();
    assert!(refused.contains("the bundle `z` has only one connection of `tcp`"), "{refused}");
    assert_eq!(parse(tcp, "\"bundle.z.tcp.fairness\" = \"> 0.5\"", "[1, 2]"), Ok(()));
}

#[test]
fn the_schema_for_editors_knows_them() {
    let schema = trunkline_editor::json_schema();
    let keys = schema["properties"]["limits"]["patternProperties"].as_object().unwrap();
    let pattern = keys.keys().next().unwrap();
    for part in ["bundle\\.", "latency\\.p999\\.max", "throughput\\.network"] {
        assert!(pattern.contains(part), "{pattern}");
    }
}

/// A limit that no point can measure would neither hold nor break.
#[test]
fn a_limit_on_what_is_never_measured_is_refused() {
    let parse = |flow: &str, limit: &str| {
        let text = format!(
            "name = \"never\"\nduration = \"1 s\"\n[hosts]\na = {{}}\nb = {{}}\n[link.l]\nbetween = [\"a\", \"b\"]\n\
             rate = \"1 Mbit/s\"\n[flow.call]\nfrom = \"a\"\nto = \"b\"\ntransport = \"udp\"\n{flow}\n[limits]\n{limit}\n"
        );
        Experiment::parse(&text, "never.toml", &()).map(|_| ()).map_err(|problems| problems.to_string())
    };
    let (voice, played) = ("source = \"voice\"", "source = \"voice\"\nplayout = \"40 ms\"");
    let fifo = "source = \"voice\"\nplayback = { kind = \"fifo\", depth = 4096 }";
    let captured = "source = { kind = \"voice\", fifo = 1200 }";
    let answered = "source = { kind = \"interactive\", answer = \"1 KB\" }";
    for (flow, limit, refused) in [
        (voice, "\"flow.call.late\" = \"< 1 %\"", Some("without a `playout` no message is late")),
        (played, "\"flow.call.late\" = \"< 1 %\"", None),
        (voice, "\"flow.call.loss-and-late\" = \"< 1 %\"", Some("without a `playout` no message is late")),
        (voice, "\"flow.call.not-in-time\" = \"< 1 %\"", Some("without a `playout` no message is late")),
        (played, "\"flow.call.not-in-time\" = \"< 1 %\"", None),
        (played, "\"flow.call.margin.min\" = \"> 1 ms\"", Some("this flow has no `playback`")),
        (played, "\"flow.call.silence\" = \"< 1 s\"", Some("this flow has no `playback`")),
        (fifo, "\"flow.call.margin.min\" = \"> 1 ms\"", None),
        (played, "\"flow.call.capture-overflows\" = \"< 1\"", Some("no A/D FIFO")),
        (fifo, "\"flow.call.capture-overflows\" = \"< 1\"", Some("no A/D FIFO")),
        (captured, "\"flow.call.capture-overflows\" = \"< 1\"", None),
        (played, "\"flow.call.samples-lost\" = \"< 1\"", Some("neither an A/D FIFO")),
        (fifo, "\"flow.call.samples-lost\" = \"< 1\"", None),
        (played, "\"flow.call.fairness\" = \"> 0.9\"", Some("only one member")),
        (&format!("{played}\ncount = 2"), "\"flow.call.fairness\" = \"> 0.9\"", None),
        (
            "source = { kind = \"bulk\", message = \"1 KiB\", interval = \"10 ms\" }",
            "\"flow.call.affected\" = \"< 1 %\"",
            Some("carries no audio"),
        ),
        (voice, "\"flow.call.mos\" = \"> 4\"", Some("this flow needs a `playout`")),
        (played, "\"flow.call.mos\" = \"> 4\"", None),
        (&format!("{played}\nreflect = true"), "\"flow.call.mos\" = \"> 4\"", Some("and no `reflect`")),
        (answered, "\"flow.call.throughput.answers\" = \"> 1 kbit/s\"", Some("in flows with `reflect`")),
        (&format!("{answered}\nreflect = true"), "\"flow.call.throughput.answers\" = \"> 1 kbit/s\"", None),
    ] {
        match (parse(flow, limit), refused) {
            (Ok(()), None) => {}
            (Err(said), Some(why)) => {
                assert!(said.contains("is never measured") && said.contains(why), "{said}")
            }
            (result, _) => panic!("{flow}: {limit}: {result:?}"),
        }
    }
}
