//! Draws of learned paths: the links that explain a measurement as well as the profile does, as the last axes of a sweep.

use super::{Swept, named};
use crate::files::Shelf;
use crate::link_profile;
use crate::model::Axis;
use crate::problem::Remark;
use crate::tree::{Item, Node, Table};

/// An axis for each profile with draws: links of one profile have the same draw at every point.
pub(super) fn read(root: &Table, swept: &[&str], shelf: &Shelf<'_>, remarks: &mut Vec<Remark>) -> Vec<Swept> {
    let mut axes: Vec<(&str, Swept)> = Vec::new();
    for (name, link) in named(root, "link") {
        let Some(node) = link.node(link_profile::DRAWS) else { continue };
        // Reading the link reports everything that is not a number of draws.
        let Item::Integer(count @ 1..=1000) = node.item else { continue };
        match drawn(name, link, count as u64, swept, shelf) {
            Ok(path) => match axes.iter_mut().find(|(other, _)| *other == path) {
                Some((_, axis)) if axis.nodes.len() == count as usize => {
                    axis.axis.key += &format!(", link.{name}.{}", link_profile::DRAWS);
                }
                Some((_, axis)) => {
                    let message = format!(
                        "`{}` and this link have the same profile, and therefore the same draw at every point; give both \
                         the same number of draws",
                        axis.axis.key
                    );
                    remarks.push(Remark::new(node.span.clone(), message));
                }
                None => {
                    let key = format!("link.{name}.{}", link_profile::DRAWS);
                    let numbers = 1..=count as u64;
                    let values = numbers.clone().map(|number| number.to_string()).collect();
                    let profile = |number| Item::Text(link_profile::profile_of_draw(path, number).into());
                    let nodes = numbers
                        .map(|number| Node { span: node.span.clone(), item: profile(number) })
                        .collect();
                    axes.push((
                        path,
                        Swept { axis: Axis { key, values, numbers: None, unit: String::new() }, nodes },
                    ));
                }
            },
            Err(message) => remarks.push(Remark::new(node.span.clone(), message)),
        }
    }
    axes.into_iter().map(|(_, axis)| axis).collect()
}

/// The profile of a link with so many draws, or why it cannot have them.
fn drawn<'t>(
    name: &str,
    link: &'t Table,
    count: u64,
    swept: &[&str],
    shelf: &Shelf<'_>,
) -> Result<&'t str, String> {
    let Some((_, path)) = link_profile::file(link) else {
        return Err("`draws` needs a `profile` that `trunkline learn` has written, such as `home.toml` with the folder \
                    `home.draws` beside it"
            .to_owned());
    };
    if swept.contains(&format!("link.{name}.{}", link_profile::PROFILE).as_str()) {
        return Err(format!(
            "the sweep replaces the profile of the link `{name}`; take out either that or `draws`"
        ));
    }
    for number in 1..=count {
        let draw = link_profile::profile_of_draw(path, number);
        if let Err(problem) = shelf.profile(&draw) {
            return Err(match number - 1 {
                0 => format!(
                    "`{draw}` {problem}: `{path}` has no draws; `trunkline learn` writes them beside a profile"
                ),
                known => format!("`{draw}` {problem}: `{path}` has {known} draws; use at most that many"),
            });
        }
    }
    Ok(path)
}
