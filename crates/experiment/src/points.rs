//! The points of a sweep. A few are kept; the others are read from the file's tree whenever they are needed, so that memory
//! does not grow with the sweep.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use trunkline_core::Duration;

use crate::bounds::Bounds;
use crate::files::{NamedFiles, Shelf, Shelved};
use crate::model::Scenario;
use crate::problem::Remark;
use crate::read::{self, Reading};
use crate::schema::Schema;
use crate::sweep;
use crate::tree::Node;

/// The most points that are kept.
pub(crate) const KEPT: usize = 100;
/// The most points that were read again and are kept: those of a batch are needed several times.
const RECENT: usize = 256;

/// One combination of swept values.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its place in the product, from 0.
    pub index: u32,
    /// The chosen value's index on each axis.
    pub choice: Vec<usize>,
    /// The experiment with those values in place.
    pub scenario: Arc<Scenario>,
}

/// Every combination of swept values (one point without values if nothing is swept), the last axis fastest.
#[derive(Clone)]
pub struct Points {
    kept: Vec<Point>,
    others: Option<Others>,
}

/// The points after those that are kept.
#[derive(Clone)]
struct Others {
    unread: Arc<Unread>,
    /// The length of each, as it was read; nothing if they were validated elsewhere.
    lengths: Arc<[Duration]>,
    /// Those that have been [set](Points::set).
    set: BTreeMap<usize, Arc<Scenario>>,
    /// Changes of all of them, in their order.
    changes: Vec<Change>,
}

type Change = Arc<dyn Fn(&mut Scenario) + Send + Sync>;

struct Unread {
    product: Product,
    shelved: Mutex<Shelved>,
    /// What points name that has not been read yet.
    files: NamedFiles,
    recent: Mutex<BTreeMap<usize, Arc<Scenario>>>,
}

impl Points {
    /// A single point.
    pub fn only(point: Point) -> Points {
        Points { kept: vec![point], others: None }
    }

    /// These points, the first of a product, and behind them its others. Their lengths are known, or else `files` are
    /// those that they name.
    pub(crate) fn new(
        kept: Vec<Point>,
        lengths: Vec<Duration>,
        product: Product,
        shelf: &Shelf<'_>,
        files: NamedFiles,
    ) -> Points {
        let (shelved, recent) = (Mutex::new(shelf.shelved()), Mutex::default());
        let others = (product.len() > kept.len()).then(|| Others {
            lengths: lengths.into(),
            unread: Arc::new(Unread { product, shelved, files, recent }),
            set: BTreeMap::new(),
            changes: Vec::new(),
        });
        Points { kept, others }
    }

    /// Number of points, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is always a point")]
    pub fn len(&self) -> usize {
        self.others.as_ref().map_or(self.kept.len(), |others| others.unread.product.len())
    }

    /// The first point: the only one if nothing is swept.
    pub fn first(&self) -> &Point {
        &self.kept[0]
    }

    /// The point at a place.
    pub fn get(&self, place: usize) -> Option<Point> {
        self.kept.get(place).cloned().or_else(|| self.others.as_ref()?.get(place))
    }

    /// The point at a place.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn at(&self, place: usize) -> Point {
        self.get(place).unwrap_or_else(|| panic!("no point {place} of {}", self.len()))
    }

    /// The longest that a run of the point at a place takes.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn length(&self, place: usize) -> Duration {
        let other = || {
            let others = self.others.as_ref()?;
            let length = || others.lengths.get(place - self.kept.len()).copied();
            let known = others.set.get(&place).map(|scenario| scenario.length()).or_else(length);
            known.or_else(|| Some(others.get(place)?.scenario.length()))
        };
        let kept = self.kept.get(place).map(|point| point.scenario.length());
        kept.or_else(other).unwrap_or_else(|| panic!("no point {place} of {}", self.len()))
    }

    /// The lengths of all of them.
    pub fn lengths(&self) -> impl Iterator<Item = Duration> {
        (0..self.len()).map(|place| self.length(place))
    }

    /// All of them, each read when it is its turn.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Point> + ExactSizeIterator {
        (0..self.len()).map(|place| self.at(place))
    }

    /// The chosen value's index on each axis, of each point.
    pub fn choices(&self) -> impl Iterator<Item = Vec<usize>> {
        let kept = self.kept.iter().map(|point| point.choice.clone());
        let others = self.others.iter().flat_map(|others| {
            let product = &others.unread.product;
            (self.kept.len()..product.len()).map(|place| product.choice(place))
        });
        kept.chain(others)
    }

    /// The place of the point with these values, by their index on each axis.
    pub fn place_of(&self, choice: &[usize]) -> Option<usize> {
        let kept = self.kept.iter().position(|point| point.choice == choice);
        kept.or_else(|| self.others.as_ref()?.unread.product.place_of(choice))
    }

    /// Puts another scenario in place of a point's.
    ///
    /// # Panics
    /// If there is no such point.
    pub fn set(&mut self, place: usize, scenario: Scenario) {
        assert!(place < self.len(), "no point {place} of {}", self.len());
        let scenario = Arc::new(scenario);
        match (self.kept.get_mut(place), &mut self.others) {
            (Some(point), _) => point.scenario = scenario,
            (None, Some(others)) => _ = others.set.insert(place, scenario),
            (None, None) => {}
        }
    }

    /// Changes the scenarios of all points, but not their lengths.
    pub fn change(&mut self, change: impl Fn(&mut Scenario) + Send + Sync + 'static) {
        self.kept.iter_mut().for_each(|point| change(Arc::make_mut(&mut point.scenario)));
        if let Some(others) = &mut self.others {
            others.set.values_mut().for_each(|scenario| change(Arc::make_mut(scenario)));
            others.changes.push(Arc::new(change));
        }
    }
}

impl Others {
    fn get(&self, place: usize) -> Option<Point> {
        let product = &self.unread.product;
        let index = u32::try_from(place).ok().filter(|_| place < product.len())?;
        let choice = product.choice(place);
        let scenario = match self.set.get(&place) {
            Some(scenario) => Arc::clone(scenario),
            None => {
                let mut scenario = self.unread.recent(place, &choice);
                self.changes.iter().for_each(|change| change(Arc::make_mut(&mut scenario)));
                scenario
            }
        };
        Some(Point { index, choice, scenario })
    }
}

impl Unread {
    /// The scenario of a point, which may have been read before.
    fn recent(&self, place: usize, choice: &[usize]) -> Arc<Scenario> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(scenario) = recent().get(&place) {
            return Arc::clone(scenario);
        }
        let scenario = Arc::new(self.read(choice));
        let mut recent = recent();
        if recent.len() >= RECENT {
            recent.clear();
        }
        recent.insert(place, Arc::clone(&scenario));
        scenario
    }

    /// The scenario of a point, which was read without remarks when the experiment was validated.
    fn read(&self, choice: &[usize]) -> Scenario {
        let mut shelved = self.shelved.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = Shelf::of(&self.files, std::mem::take(&mut *shelved));
        let read = self.product.read(&shelf, choice);
        *shelved = shelf.into_shelved();
        match read {
            Ok(reading) => reading.scenario,
            Err(remarks) => panic!("a point that was valid is not any more: {remarks:?}"),
        }
    }
}

impl core::fmt::Debug for Points {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Points").field("kept", &self.kept).field("len", &self.len()).finish()
    }
}

/// Every combination of the swept values of a tree.
pub(crate) struct Product {
    pub(crate) schema: Schema,
    /// The tree without its sweep.
    pub(crate) root: Node,
    /// The swept keys with their values.
    pub(crate) swept: Vec<(String, Vec<Node>)>,
    pub(crate) bounds: Bounds,
}

impl Product {
    pub(crate) fn len(&self) -> usize {
        self.swept.iter().map(|(_, nodes)| nodes.len()).product()
    }

    /// The values of a point, by their index on each axis.
    pub(crate) fn choice(&self, mut place: usize) -> Vec<usize> {
        let mut choice = vec![0; self.swept.len()];
        for (chosen, (_, nodes)) in choice.iter_mut().zip(&self.swept).rev() {
            (*chosen, place) = (place % nodes.len(), place / nodes.len());
        }
        choice
    }

    /// The place of the point with these values; `None` if there is no such point.
    pub(crate) fn place_of(&self, choice: &[usize]) -> Option<usize> {
        let axes = || choice.iter().zip(&self.swept);
        let is_there =
            choice.len() == self.swept.len() && axes().all(|(chosen, (_, nodes))| *chosen < nodes.len());
        let behind = |place: usize, (chosen, (_, nodes)): (&usize, &(String, Vec<Node>))| {
            place.saturating_mul(nodes.len()).saturating_add(*chosen)
        };
        is_there.then(|| axes().fold(0, behind))
    }

    /// Reads a point; a swept value may make it larger than the file itself.
    pub(crate) fn read(&self, shelf: &Shelf<'_>, choice: &[usize]) -> Result<Reading, Vec<Remark>> {
        let tree = self.tree(shelf, choice);
        self.bounds.check_tree(&self.schema, &tree).map_err(|remark| vec![remark])?;
        read::read(&self.schema, shelf, &tree)
    }

    /// The tree with the values of a point in place.
    fn tree(&self, shelf: &Shelf<'_>, choice: &[usize]) -> Node {
        let mut tree = self.root.clone();
        let point = self.swept.iter().zip(choice);
        let point = point.flat_map(|((key, nodes), chosen)| sweep::values(key, &nodes[*chosen]));
        sweep::apply_point(&self.schema, &mut tree, shelf, self.bounds.alike, point);
        tree
    }
}
