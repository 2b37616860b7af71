//! From text to a validated experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use trunkline_transport::kind::TransportKind;

use crate::bounds::Bounds;
use crate::files::{Files, NamedFiles, Shelf};
use crate::model::{Experiment, Point};
use crate::problem::{Problems, Remark};
use crate::read::{Head, Reading};
use crate::schema::Schema;
use crate::setting::{Setting, Sources};
use crate::sweep::Swept;
use crate::transport::TRANSPORTS;
use crate::tree::{Item, Node};
use crate::{limits, link_profile, read, sweep, tree};

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
        read_text(text, file, files, &[], &Part { bounds, only: Some(choice), transports: TRANSPORTS })
    }
}

/// How much of a text is read.
struct Part<'p> {
    bounds: &'p Bounds,
    /// The only point that is read, if not all are.
    only: Option<&'p [usize]>,
    transports: &'static [&'static TransportKind],
}

impl Part<'_> {
    fn all(transports: &'static [&'static TransportKind]) -> Part<'static> {
        Part { bounds: &Bounds::NONE, only: None, transports }
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
    let limits = limits::read(&table, &mut remarks);
    // Points have copies of the tree. The values of the other points would make them quadratic.
    let mut without_sweep = root.clone();
    if let Item::Table(table) = &mut without_sweep.item {
        table.0.retain(|entry| &*entry.key != "sweep");
    }
    let mut product = Product { schema, shelf, root: &without_sweep, swept: &swept, bounds: part.bounds };
    let read = match part.only {
        Some(choice) => product.read_one(choice),
        None => product.read(),
    };
    match read {
        Ok((first, points)) => {
            let limits = limits::checked(limits, &points, &mut remarks);
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
                axes: swept.into_iter().map(|swept| swept.axis).collect(),
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

/// Every combination of the swept values.
struct Product<'p> {
    schema: &'p Schema,
    shelf: &'p Shelf<'p>,
    root: &'p Node,
    swept: &'p [Swept],
    bounds: &'p Bounds,
}

/// In which points a remark was made: how many, the first, and on each axis the values.
struct Occurrence {
    points: usize,
    first: Vec<usize>,
    choices: Vec<BTreeSet<usize>>,
}

impl Product<'_> {
    /// Reads the point with these values of the axes.
    fn read_one(&self, choice: &[usize]) -> Result<(Head, Vec<Point>), Vec<Remark>> {
        let is_there = choice.len() == self.swept.len()
            && choice.iter().zip(self.swept).all(|(chosen, swept)| *chosen < swept.nodes.len());
        if !is_there {
            return Err(vec![Remark::new(0..0, "the sweep of the experiment has no such point")]);
        }
        let Reading { head, scenario } = self.read_point(choice)?;
        let behind = |index: u64, (chosen, swept): (&usize, &Swept)| {
            index.saturating_mul(swept.nodes.len() as u64).saturating_add(*chosen as u64)
        };
        let index = choice.iter().zip(self.swept).fold(0, behind);
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        Ok((head, vec![Point { index, choice: choice.to_vec(), scenario: Arc::new(scenario) }]))
    }

    /// Reads every point, the last axis fastest.
    fn read(&mut self) -> Result<(Head, Vec<Point>), Vec<Remark>> {
        let mut choice = vec![0; self.swept.len()];
        let mut first: Option<Head> = None;
        let mut points: Vec<Point> = Vec::new();
        let mut occurrences: BTreeMap<Remark, Occurrence> = BTreeMap::new();
        let mut count = 0;
        loop {
            match self.read_point(&choice) {
                Ok(Reading { head, mut scenario }) => {
                    // A sweep may have 100,000 points, most of whose values are the same.
                    scenario.shrink();
                    points.last().iter().for_each(|before| scenario.share(&before.scenario));
                    let scenario = Arc::new(scenario);
                    points.push(Point { index: count as u32, choice: choice.clone(), scenario });
                    first.get_or_insert(head);
                }
                Err(remarks) => {
                    // Once per point: both directions of a link are read from the same keys.
                    for remark in BTreeSet::from_iter(remarks) {
                        occurrences.entry(remark).or_insert_with(|| Occurrence::at(&choice)).count(&choice);
                    }
                }
            }
            count += 1;
            if !self.next(&mut choice) {
                break;
            }
        }
        match first {
            Some(head) if occurrences.is_empty() => Ok((head, points)),
            _ => Err(occurrences.into_iter().map(|(remark, at)| self.placed(remark, &at, count)).collect()),
        }
    }

    /// Reads a point; a swept value may make it larger than the file itself.
    fn read_point(&self, choice: &[usize]) -> Result<Reading, Vec<Remark>> {
        let tree = self.tree(choice);
        self.bounds.check_tree(self.schema, &tree).map_err(|remark| vec![remark])?;
        read::read(self.schema, self.shelf, &tree)
    }

    /// The tree with the values of a point in place.
    fn tree(&self, choice: &[usize]) -> Node {
        let mut tree = self.root.clone();
        let point = self.swept.iter().zip(choice);
        let point = point.flat_map(|(swept, chosen)| sweep::values(&swept.axis.key, &swept.nodes[*chosen]));
        sweep::apply_point(self.schema, &mut tree, self.shelf, self.bounds.alike, point);
        tree
    }

    /// Goes to the next point; false after the last.
    fn next(&self, choice: &mut [usize]) -> bool {
        for (chosen, swept) in choice.iter_mut().zip(self.swept).rev() {
            *chosen += 1;
            if *chosen < swept.nodes.len() {
                return true;
            }
            *chosen = 0;
        }
        false
    }

    /// A remark that is not made in every point is about a swept value: it is moved to the first such value of the
    /// axis that tells best where it is made and where not.
    fn placed(&self, mut remark: Remark, occurrence: &Occurrence, points: usize) -> Remark {
        let within = |node: &Node| node.span.start <= remark.start && remark.end <= node.span.end;
        let already = self.swept.iter().flat_map(|swept| &swept.nodes).any(within);
        if already || occurrence.points == points || remark.file.is_some() {
            return remark;
        }
        let share = |axis: usize| occurrence.choices[axis].len() as f64 / self.swept[axis].nodes.len() as f64;
        let Some(axis) = (0..self.swept.len()).min_by(|a, b| share(*a).total_cmp(&share(*b))) else {
            return remark;
        };
        let span = &self.swept[axis].nodes[occurrence.first[axis]].span;
        (remark.start, remark.end) = (span.start, span.end);
        remark
    }
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
