use super::*;
use crate::api::StudyBackend;
use crate::jobs::Needs;

#[test]
fn every_study_is_shown_as_it_was_published() {
    for study in studies() {
        let published = trunkline_papers::published(study).expect("the study is right");
        let shown = shown::paper(&published, |_| false);
        assert_eq!(
            shown::real_time(study).is_ok_and(|found| found.is_empty()),
            study.wired.is_empty(),
            "{}",
            study.name
        );
        assert_eq!(shown.tables.len(), study.tables.len());
        assert_eq!(shown.figures.len(), study.figures.len() + study.scatters.len());
        let tables = shown::tables(&published);
        let printed = tables.iter().flat_map(|table| &table.rows).flat_map(|row| &row.cells);
        assert!(printed.filter(|cell| cell.published.is_some()).count() > 0, "{}", study.name);
        for table in &tables {
            assert!(
                !table.columns.is_empty()
                    && table.rows.iter().all(|row| row.cells.len() == table.columns.len())
            );
        }
    }
}

#[test]
fn what_is_not_there_is_told() {
    let told = |error: ApiError| error.info().message.clone();
    assert!(find("nobody2001").is_err_and(|error| told(error).contains("known: `hawley1989`")));
    let study = find("hawley1989").expect("it is there");
    let tables = |tables: &[&str]| crate::api::NewStudy {
        tables: Some(tables.iter().map(|name| (*name).to_owned()).collect()),
        ..Default::default()
    };
    let unknown = repeat::Wanted::new(study, tables(&["table99"])).err();
    assert!(unknown.is_some_and(|error| told(error).contains("has no table `table99`; its tables are")));
    let often = crate::api::NewStudy { repetitions: Some(0), ..Default::default() };
    assert!(repeat::Wanted::new(study, often).is_err());
    assert!(repeat::Wanted::new(study, tables(&[&study.tables[0].name])).is_ok());
}

#[test]
fn what_is_measured_has_the_machine_for_itself() {
    let needs = |name: &str, tables: &[&str], on| {
        let tables = Some(tables.iter().map(|name| (*name).to_owned()).collect());
        let new = crate::api::NewStudy { tables, on, ..Default::default() };
        let wanted = repeat::Wanted::new(find(name).expect("it is there"), new);
        wanted.map(|wanted| wanted.needs()).map_err(|error| error.info().message.clone())
    };
    let wire = Some(StudyBackend::Wire);
    assert_eq!(needs("schiavoni2013", &["table03"], None), Ok(Needs::Cores));
    assert_eq!(needs("schiavoni2013", &["table03"], wire), Ok(Needs::Machine));
    // On one computer only: nothing for the wire.
    assert_eq!(needs("schiavoni2013", &["table02"], wire), Ok(Needs::Cores));
    // Measured live, wherever the others are had; and one of all.
    assert_eq!(needs("schiavoni2013", &["here"], None), Ok(Needs::Machine));
    assert_eq!(needs("schiavoni2013", &[], None), Ok(Needs::Machine));
    assert_eq!(needs("hawley1989", &[], None), Ok(Needs::Cores));
    let told = needs("hawley1989", &[], wire).expect_err("it has none");
    assert!(told.contains("has no experiment for the wire"), "{told}");
}
