//! What is asked, made into a plan: every mistake is told before anything is measured or written.

use core::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trunkline_experiment::{Axis, Experiment, Files, Limit, Searchable, Single, Subject};
use trunkline_runner::{DirectoryFiles, Hear, LoadError, Request, RunnerError};

use crate::judge::Terms;
use crate::search::{Begin, Goal, Precision, Search};
use crate::sheet::Sheet;

/// What is asked for. Values are texts as they would stand in the file.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The largest or the smallest.
    pub goal: Goal,
    /// Of what: `flow.voice.count`.
    pub key: &'q str,
    /// A second key with its values; for each of them the first is searched.
    pub against: Option<(&'q str, &'q [String])>,
    /// The smallest value to try; without it, what the schema allows.
    pub from: Option<&'q str>,
    /// The largest value to try; without it, what the schema allows.
    pub to: Option<&'q str>,
    /// How near the edge must come.
    pub nearness: Nearness<'q>,
    /// How often a value is measured before it is judged; without it as the file says, or 5 times if that is once.
    pub repetitions: Option<u32>,
    /// How often at most; without it 8 times as often.
    pub most: Option<u32>,
    /// How sure a verdict must be, from 0 to 1.
    pub confidence: f64,
}

/// How near the edge must come.
#[derive(Clone, Copy, Debug)]
pub enum Nearness<'q> {
    /// To the last one of what is counted, to 1 % of everything else.
    Default,
    /// To an amount, with its unit.
    Step(&'q str),
    /// To a share of the value.
    Share(f64),
}

/// Why a plan cannot be made or carried out.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// What was asked for makes no sense with this file: bad input.
    #[error("{0}")]
    Question(String),
    /// A file that cannot be read: bad input.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Measuring failed.
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

impl PlanError {
    /// Whether the user can mend it by another file or other options (exit code 2), rather than the environment.
    pub fn is_bad_input(&self) -> bool {
        match self {
            PlanError::Question(_) | PlanError::Load(_) => true,
            PlanError::Runner(error) => error.is_bad_input(),
        }
    }
}

/// A question that can be answered.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The largest or the smallest.
    pub goal: Goal,
    /// The key that is searched.
    pub key: Searchable,
    /// The values it may have.
    pub range: RangeInclusive<u64>,
    /// How near the edge comes.
    pub precision: Precision,
    /// How sure verdicts are.
    pub terms: Terms,
    /// What else is swept: for every combination of these there is a search.
    pub axes: Vec<Axis>,
    /// Whether the first of them was asked for beside the file.
    pub against: bool,
    /// What the file says itself on each axis, in the axis's unit; `None` where that is no number.
    pub(crate) own: Vec<Option<f64>>,
    pub(crate) begin: Begin,
    pub(crate) sheet: Sheet,
    /// The experiment at the first value.
    pub(crate) first: Experiment,
    pub(crate) file: PathBuf,
    files: Named,
}

/// The files that the experiment names.
#[derive(Clone)]
struct Named(Arc<dyn Files + Send + Sync>);

impl core::fmt::Debug for Named {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Named")
    }
}

impl Plan {
    /// Reads the question against the experiment that was loaded from `file`, with what it names beside it.
    ///
    /// # Errors
    /// In a sentence, whatever cannot be answered.
    pub fn new(experiment: &Experiment, file: &Path, question: &Question<'_>) -> Result<Plan, PlanError> {
        Plan::with_files(experiment, file, Arc::new(DirectoryFiles::beside(file)), question)
    }

    /// As [`Plan::new`], with what the experiment names read from `files`.
    ///
    /// # Errors
    /// As [`Plan::new`].
    pub fn with_files(
        experiment: &Experiment,
        file: &Path,
        files: Arc<dyn Files + Send + Sync>,
        question: &Question<'_>,
    ) -> Result<Plan, PlanError> {
        let wrong = PlanError::Question;
        if experiment.limits.is_empty() {
            return Err(wrong(
                "the file has no `[limits]`, which define acceptable results; add one, for example \
                `\"flow.voice.loss\" = \"< 1 %\"`"
                    .to_owned(),
            ));
        }
        let terms = terms(experiment, question).map_err(wrong)?;
        let mut key = experiment.searchable(question.key).map_err(wrong)?;
        if let (None, Some(bound)) = (key.now(), question.from.or(question.to)) {
            key = key.in_unit_of(bound);
        }
        let range = range(experiment, &key, question).map_err(wrong)?;
        let begin = begin(&key, &range, question).map_err(wrong)?;
        let precision = precision(&key, question.nearness).map_err(wrong)?;
        if question.against.is_some_and(|(against, _)| against == question.key) {
            return Err(wrong(format!("`--against` cannot name the searched key `{}`", question.key)));
        }
        let sheet = Sheet::new(&experiment.text, question.key, question.against).map_err(wrong)?;
        let first_value = Search::new(question.goal, range.clone(), begin, precision).next_value();
        let literal = key.literal(first_value.unwrap_or(*range.start()));
        let mut first = read(&sheet, &[literal], file, &*files).map_err(wrong)?;
        // The text has them.
        first.settings.clone_from(&experiment.settings);
        let axes = first.axes.get(1..).unwrap_or_default().to_vec();
        Ok(Plan {
            goal: question.goal,
            own: axes.iter().map(|axis| own(experiment, axis)).collect(),
            axes,
            against: question.against.is_some(),
            file: file.to_path_buf(),
            key,
            range,
            precision,
            terms,
            begin,
            sheet,
            first,
            files: Named(files),
        })
    }

    /// The experiment at the first value: its hosts are those of every other.
    pub fn first(&self) -> &Experiment {
        &self.first
    }

    /// Finds what would stop the first measurement, before anything is written. Errors name the file as the user did, if `named`
    /// is not `None`.
    ///
    /// # Errors
    /// As [`trunkline_runner::precheck`].
    pub fn precheck(&self, means: &Means<'_>, named: Option<&Path>) -> Result<(), PlanError> {
        Ok(trunkline_runner::precheck(&means.request(&self.first, named.unwrap_or(&self.file)))?)
    }

    /// True if draws of learned paths are among the axes.
    pub(crate) fn has_draws(&self) -> bool {
        self.axes.iter().any(Axis::is_draws)
    }

    /// A new search for one combination of what else is swept.
    pub(crate) fn search(&self) -> Search {
        Search::new(self.goal, self.range.clone(), self.begin, self.precision)
    }

    /// The experiment with these values of the key, the smallest first.
    pub(crate) fn with(&self, values: impl Iterator<Item = u64>) -> Result<Experiment, PlanError> {
        let literals: Vec<String> = values.map(|value| self.key.literal(value)).collect();
        read(&self.sheet, &literals, &self.file, &*self.files.0).map_err(PlanError::Question)
    }
}

/// With what a plan is measured.
#[derive(Clone, Copy, Debug)]
pub struct Means<'m> {
    /// Where it runs.
    pub backend: trunkline_store::Backend,
    /// How many repetitions are simulated at once.
    pub jobs: usize,
    /// How `wire` and `live` measure.
    pub live: &'m trunkline_live::LiveOptions,
    /// With what `wire` is made; nothing else needs it.
    pub wire: Option<&'m trunkline_runner::WireMeans>,
    /// Who listens to what is measured, while it is.
    pub tap: Option<&'m dyn trunkline_runner::Tap>,
    /// The agents of the experiment's hosts, where `live` is measured through them.
    pub fleet: Option<&'m trunkline_agent::controller::Fleet>,
    /// Workers that measure instead of this process; for `sim`.
    pub elsewhere: Option<&'m dyn trunkline_runner::Elsewhere>,
}

impl<'m> Means<'m> {
    pub(crate) fn request<'r>(&self, experiment: &'r Experiment, file: &'r Path) -> Request<'r>
    where
        'm: 'r,
    {
        let Means { backend, jobs, live, wire, tap, fleet, elsewhere: _ } = *self;
        Request {
            experiment,
            file,
            backend,
            jobs,
            live,
            wire,
            hear: Hear::nothing(),
            tap,
            kernels: None,
            fleet,
        }
    }
}

/// The file with these values, or what is wrong with it then. Positions in a file that nobody has seen help nobody.
fn read(sheet: &Sheet, literals: &[String], file: &Path, files: &dyn Files) -> Result<Experiment, String> {
    Experiment::parse(&sheet.with(literals), &file.display().to_string(), files).map_err(|problems| {
        let sentences: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
        sentences.join("; ")
    })
}

/// What the file says itself of an axis's key, in the axis's unit.
fn own(experiment: &Experiment, axis: &Axis) -> Option<f64> {
    let key = experiment.searchable(&axis.key).ok()?;
    let key = if axis.unit.is_empty() { key } else { key.in_unit_of(&axis.unit) };
    Some(key.number(key.now()?))
}

fn terms(experiment: &Experiment, question: &Question<'_>) -> Result<Terms, String> {
    const IF_ONCE: u32 = 5;
    const MOST: u32 = 8;
    let of_file = if experiment.repetitions > 1 { experiment.repetitions } else { IF_ONCE };
    let repetitions = question.repetitions.unwrap_or(of_file);
    if repetitions < 2 {
        return Err("`--repetitions` must be at least 2: a single repetition has no spread".to_owned());
    }
    let most = question.most.unwrap_or(repetitions.saturating_mul(MOST));
    if most < repetitions {
        return Err(format!(
            "`--most-repetitions {most}` is less than the initial {repetitions} repetitions"
        ));
    }
    let confidence = question.confidence;
    if !(confidence > 0.5 && confidence < 1.0) {
        return Err(format!("`--confidence` must lie between 50 % and 100 %, not {} %", confidence * 100.0));
    }
    Ok(Terms { confidence, repetitions, most })
}

fn range(
    experiment: &Experiment,
    key: &Searchable,
    question: &Question<'_>,
) -> Result<RangeInclusive<u64>, String> {
    let allowed = key.range();
    let numbered = numbered(experiment, key);
    let least = numbered.map_or(*allowed.start(), |(number, _)| number);
    let bound = |text: Option<&str>, or: u64| text.map_or(Ok(or), |text| key.parse(text));
    let from = bound(question.from, least)?;
    if let Some((number, limit)) = numbered.filter(|_| from < least) {
        return Err(format!(
            "`--from {}`: the limit `{}` needs at least {number} of these hosts; expected a larger bound, or a limit on \
             `each` of the flows",
            key.written(from),
            limit.key
        ));
    }
    let to = bound(question.to, *allowed.end())?;
    match from <= to {
        true => Ok(from..=to),
        false => Err(format!(
            "`--from {}` is above `--to {}`: `--from` is the smaller bound for `--maximise` and `--minimise` \
            alike",
            key.written(from),
            key.written(to)
        )),
    }
}

/// The largest number of a flow that a limit names, if the key says how many of these flows there are.
fn numbered<'e>(experiment: &'e Experiment, key: &Searchable) -> Option<(u64, &'e Limit)> {
    let first = format!("{}-1", key.key().strip_prefix("hosts.")?.strip_suffix(".count")?);
    let scenario = &experiment.points.first().scenario;
    let number = |limit: &Limit| {
        let Subject::Single { flow, single: Single::Number(number), .. } = limit.subject else { return None };
        let flow = scenario.flows.get(flow)?;
        let mut ends = core::iter::once(flow.from).chain(flow.to.iter().map(|sink| sink.host));
        ends.any(|end| scenario.hosts[end].name == first).then_some(u64::from(number))
    };
    let numbers = experiment.limits.iter().filter_map(|limit| Some((number(limit)?, limit)));
    numbers.max_by_key(|(number, _)| *number)
}

fn begin(key: &Searchable, range: &RangeInclusive<u64>, question: &Question<'_>) -> Result<Begin, String> {
    match (question.from, question.to, key.now()) {
        (Some(_), Some(_), _) => Ok(Begin::Ends),
        (_, _, Some(now)) => Ok(Begin::At(now)),
        (Some(_), None, None) => Ok(Begin::At(*range.start())),
        (None, Some(_), None) => Ok(Begin::At(*range.end())),
        (None, None, None) => Err(format!(
            "the file has no single value of `{}` to start from: give the bounds with `--from` and `--to`",
            key.key()
        )),
    }
}

fn precision(key: &Searchable, nearness: Nearness<'_>) -> Result<Precision, String> {
    const SHARE: f64 = 0.01;
    let unit = key.unit_grains();
    match nearness {
        Nearness::Default if key.is_count() => Ok(Precision::Step(1)),
        Nearness::Default => Ok(Precision::Share { share: SHARE, unit }),
        Nearness::Share(share) if share > 0.0 && share < 1.0 => Ok(Precision::Share { share, unit }),
        Nearness::Share(_) => Err("`--precision` must lie between 0 % and 100 %".to_owned()),
        Nearness::Step(text) => match key.read(text).filter(|step| *step > 0) {
            Some(step) => Ok(Precision::Step(step)),
            None => Err(format!(
                "`--step {text}` is not a valid amount of `{}`: expected one such as `{}`",
                key.key(),
                key.written(unit)
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Below the number of the flow that a limit names, there is nothing to judge.
    #[test]
    fn a_limit_on_a_numbered_flow_bounds_the_hosts_from_below() {
        let file = "name = \"phones\"\nduration = \"1 s\"\n[hosts]\nphone = { count = 4 }\nb = {}\n[link.l]\n\
            between = [\"phone\", \"b\"]\nrate = \"1 Mbit/s\"\n[flow.voice]\nfrom = \"phone\"\nto = \"b\"\n\
            transport = \"udp\"\nsource = \"voice\"\n[limits]\n\"flow.voice-3.loss\" = \"< 1 %\"\n";
        let experiment = Experiment::parse(file, "x.toml", &()).unwrap();
        let ask = |from| {
            let question = Question {
                goal: Goal::Maximise,
                key: "hosts.phone.count",
                against: None,
                from,
                to: Some("8"),
                nearness: Nearness::Default,
                repetitions: None,
                most: None,
                confidence: 0.95,
            };
            Plan::with_files(&experiment, Path::new("x.toml"), Arc::new(()), &question)
        };
        assert_eq!(ask(None).unwrap().range, 3..=8);
        assert_eq!(ask(Some("4")).unwrap().range, 4..=8);
        let refused = ask(Some("2")).unwrap_err().to_string();
        assert!(
            refused.starts_with("`--from 2`: the limit `flow.voice-3.loss` needs at least 3"),
            "{refused}"
        );
    }
}
