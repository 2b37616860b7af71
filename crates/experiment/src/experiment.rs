//! From text to a validated experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trunkline_core::Duration;
use trunkline_transport::kind::TransportKind;

use crate::bounds::Bounds;
use crate::files::{Files, NamedFiles, Shelf};
use crate::model::{Axis, Limit};
use crate::points::{KEPT, Point, Points, Product};
use crate::problem::{Problems, Remark};
use crate::read::{Head, Reading};
use crate::schema::Schema;
use crate::setting::{Setting, Sources};
use crate::sweep::Swept;
use crate::transport::TRANSPORTS;
use crate::tree::{Item, Node};
use crate::{limits, link_profile, sweep, tree};

/// A validated experiment file.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// The file's text with its settings, as stored with every run.
    pub text: String,
    /// Settings beside the file; the text has them already.
    pub settings: Vec<Setting>,
    /// The files that it names, as they were read; stored with every run too.
    pub files: NamedFiles,
    /// Repetitions of every point, at least 1.
    pub repetitions: u32,
    /// The seed from which all random streams derive.
    pub seed: u64,
    /// The swept keys, in the order of the file. Empty for a single point.
    pub axes: Vec<Axis>,
    /// Every combination of swept values.
    pub points: Points,
    /// The limits.
    pub limits: Vec<Limit>,
}

impl Experiment {
    /// Reads and validates an experiment file and all that it names.
    ///
    /// `file` is what the file is called in problems; `files` reads what it names, once each.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of its lines. A problem of a swept value is told at that value.
    pub fn parse(text: &str, file: &str, files: &dyn Files) -> Result<Experiment, Problems> {
        Experiment::parse_with(text, file, files, &[])
    }

    /// The same of a file in which some keys get other values, one after the other. The experiment's text is then the file's
    /// with those values.
    ///
    /// # Errors
    /// As [`Experiment::parse`]; a problem of a setting is told at its own text.
    pub fn parse_with(
        text: &str,
        file: &str,
        files: &dyn Files,
        settings: &[Setting],
    ) -> Result<Experiment, Problems> {
        read_text(text, file, files, settings, &Part::all(TRANSPORTS))
    }

    /// Reads an experiment that this version has validated elsewhere, with the files that it names. Its points are read when they
    /// are needed, and its limits are left out.
    ///
    /// # Errors
    /// As [`parse`](Experiment::parse), of the first point.
    pub fn parse_validated(text: &str, file: &str, files: &NamedFiles) -> Result<Experiment, Problems> {
        read_text(text, file, files, &[], &Part { validated: Some(files), ..Part::all(TRANSPORTS) })
    }

    /// As [`parse`](Experiment::parse), with other transports than [`TRANSPORTS`].
    ///
    /// # Errors
    /// As [`parse`](Experiment::parse).
    pub fn parse_among(
        transports: &'static [&'static TransportKind],
        text: &str,
        file: &str,
        files: &dyn Files,
    ) -> Result<Experiment, Problems> {
        read_text(text, file, files, &[], &Part::all(transports))
    }

    /// Reads one point of a peer's experiment within limits: that with these values of the axes, by their indices. The other
    /// points are not read.
    ///
    /// # Errors
    /// As [`parse`](Experiment::parse), if the text exceeds the limits, or if there is no such point.
    pub fn parse_point(
        text: &str,
        file: &str,
        files: &dyn Files,
        bounds: &Bounds,
        choice: &[usize],
    ) -> Result<Experiment, Problems> {
        read_text(text, file, files, &[], &Part { bounds, only: Some(choice), ..Part::all(TRANSPORTS) })
    }
}

/// The part of a text that is read.
struct Part<'p> {
    bounds: &'p Bounds,
    /// The only point that is read, if not all are.
    only: Option<&'p [usize]>,
    /// The files that the points name, if these need not be validated.
    validated: Option<&'p NamedFiles>,
    transports: &'static [&'static TransportKind],
}

impl Part<'_> {
    fn all(transports: &'static [&'static TransportKind]) -> Part<'static> {
        Part { bounds: &Bounds::NONE, only: None, validated: None, transports }
    }
}

fn read_text(
    text: &str,
    file: &str,
    files: &dyn Files,
    settings: &[Setting],
    part: &Part<'_>,
) -> Result<Experiment, Problems> {
    if let Err(remark) = part.bounds.check_text(text) {
        return Err(Problems::place(vec![remark], file, "", |_| Arc::from("")));
    }
    let shelf = Shelf::new(files);
    let sources = Sources::new(text, settings);
    let read = parse(&sources, settings.is_empty(), &shelf, part)
        .map_err(|remarks| Problems::place_in(remarks, file, &sources, |path| shelf.profile_text(path)))?;
    Ok(Experiment { files: shelf.into_named(), settings: settings.to_vec(), ..read })
}

fn parse(
    sources: &Sources<'_>,
    as_it_is: bool,
    shelf: &Shelf<'_>,
    part: &Part<'_>,
) -> Result<Experiment, Vec<Remark>> {
    let schema = Schema::with(part.transports);
    let (root, edits) = sources.tree(&schema)?;
    let read = parse_tree(&schema, &sources.text, &root, shelf, part)?;
    if as_it_is {
        return Ok(read);
    }
    // Its points, which may be many, are read again.
    drop(read);
    // What runs is what is stored: the text with the settings, not the tree.
    let edited = sources.edited(&edits)?;
    parse_tree(&schema, &edited, &tree::parse(&edited)?, shelf, part)
}

fn parse_tree(
    schema: &Schema,
    text: &str,
    root: &Node,
    shelf: &Shelf<'_>,
    part: &Part<'_>,
) -> Result<Experiment, Vec<Remark>> {
    let mut root = root.clone();
    link_profile::fill_in_files(&mut root, shelf, part.bounds.alike).map_err(|remark| vec![remark])?;
    let root = &root;
    let table = root.table().cloned().unwrap_or_default();
    let mut remarks = Vec::new();
    // The keys of the sweep are looked up among all names.
    part.bounds.check_tree(schema, root).map_err(|remark| vec![remark])?;
    let swept = sweep::read(schema, text, &table, shelf, &mut remarks);
    let limits = if part.validated.is_some() { Vec::new() } else { limits::read(&table, &mut remarks) };
    // Points have copies of the tree. The values of the other points would make them quadratic.
    let mut without_sweep = root.clone();
    if let Item::Table(table) = &mut without_sweep.item {
        table.0.retain(|entry| &*entry.key != "sweep");
    }
    let (axes, swept) =
        swept.into_iter().map(|Swept { axis, nodes }| (axis.clone(), (axis.key, nodes))).unzip();
    let bounds = *part.bounds;
    let product = Product { schema: Schema::with(schema.transports), root: without_sweep, swept, bounds };
    let read = match (part.only, part.validated) {
        (Some(choice), _) => {
            read_one(&product, shelf, choice).map(|(head, point)| (head, Points::only(point)))
        }
        (None, Some(files)) => read_one(&product, shelf, &product.choice(0))
            .map(|(head, first)| (head, Points::new(vec![first], Vec::new(), product, shelf, files.clone()))),
        (None, None) => read_all(&product, shelf).map(|(head, kept, lengths)| {
            (head, Points::new(kept, lengths, product, shelf, NamedFiles::default()))
        }),
    };
    match read {
        Ok((first, points)) => {
            let limits = limits::checked(limits, || points.iter().map(|point| point.scenario), &mut remarks);
            if !remarks.is_empty() {
                return Err(remarks);
            }
            Ok(Experiment {
                name: first.name,
                text: text.to_owned(),
                settings: Vec::new(),
                files: NamedFiles::default(),
                repetitions: first.repetitions,
                seed: first.seed,
                axes,
                points,
                limits,
            })
        }
        Err(more) => {
            remarks.extend(more);
            Err(remarks)
        }
    }
}

/// In which points a remark was made: how many, the first, and on each axis the values.
struct Occurrence {
    points: usize,
    first: Vec<usize>,
    choices: Vec<BTreeSet<usize>>,
}

/// Reads every point of a product. Returns what all have in common, the points that are kept, and the lengths of the others.
fn read_all(product: &Product, shelf: &Shelf<'_>) -> Result<(Head, Vec<Point>, Vec<Duration>), Vec<Remark>> {
    let mut first: Option<Head> = None;
    let (mut kept, mut lengths) = (Vec::new(), Vec::new());
    let mut occurrences: BTreeMap<Remark, Occurrence> = BTreeMap::new();
    for place in 0..product.len() {
        let choice = product.choice(place);
        match product.read(shelf, &choice) {
            Ok(Reading { head, scenario }) => {
                match place < KEPT {
                    true => kept.push(Point { index: place as u32, choice, scenario: Arc::new(scenario) }),
                    false => lengths.push(scenario.length()),
                }
                first.get_or_insert(head);
            }
            Err(remarks) => {
                // Once per point: both directions of a link are read from the same keys.
                for remark in BTreeSet::from_iter(remarks) {
                    occurrences.entry(remark).or_insert_with(|| Occurrence::at(&choice)).count(&choice);
                }
            }
        }
    }
    match first {
        Some(head) if occurrences.is_empty() => Ok((head, kept, lengths)),
        _ => Err(occurrences.into_iter().map(|(remark, at)| placed(product, remark, &at)).collect()),
    }
}

/// Reads the point with these values of the axes.
fn read_one(product: &Product, shelf: &Shelf<'_>, choice: &[usize]) -> Result<(Head, Point), Vec<Remark>> {
    let place = product
        .place_of(choice)
        .ok_or_else(|| vec![Remark::new(0..0, "the sweep of the experiment has no such point")])?;
    let Reading { head, scenario } = product.read(shelf, choice)?;
    let index = u32::try_from(place).unwrap_or(u32::MAX);
    Ok((head, Point { index, choice: choice.to_vec(), scenario: Arc::new(scenario) }))
}

/// A remark that is not made in every point is about a swept value: it is moved to the first such value of the
/// axis that tells best where it is made and where not.
fn placed(product: &Product, mut remark: Remark, occurrence: &Occurrence) -> Remark {
    let swept = &product.swept;
    let within = |node: &Node| node.span.start <= remark.start && remark.end <= node.span.end;
    let already = swept.iter().flat_map(|(_, nodes)| nodes).any(within);
    if already || occurrence.points == product.len() || remark.file.is_some() {
        return remark;
    }
    let share = |axis: usize| occurrence.choices[axis].len() as f64 / swept[axis].1.len() as f64;
    let Some(axis) = (0..swept.len()).min_by(|a, b| share(*a).total_cmp(&share(*b))) else {
        return remark;
    };
    let span = &swept[axis].1[occurrence.first[axis]].span;
    (remark.start, remark.end) = (span.start, span.end);
    remark
}

impl Occurrence {
    fn at(choice: &[usize]) -> Occurrence {
        Occurrence { points: 0, first: choice.to_vec(), choices: vec![BTreeSet::new(); choice.len()] }
    }

    fn count(&mut self, choice: &[usize]) {
        self.points += 1;
        for (choices, chosen) in self.choices.iter_mut().zip(choice) {
            choices.insert(*chosen);
        }
    }
}
