use super::*;

#[test]
fn every_study_is_shown_as_it_was_published() {
    for study in STUDIES {
        let shown = shown::paper(study);
        assert_eq!(shown.tables.len(), study.tables.len());
        assert_eq!(shown.figures.len(), study.figures.len() + study.scatters.len());
        let published = trunkline_papers::published(study).expect("the study is right");
        let (tables, goals) = kept::beside(shown::tables(&published), None);
        assert!(goals.is_empty());
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
    assert!(find("nobody2001").is_err_and(|error| told(error).contains("known are `hawley1989`")));
    let study = find("hawley1989").expect("it is there");
    let tables = |tables: &[&str]| crate::api::NewStudy {
        tables: Some(tables.iter().map(|name| (*name).to_owned()).collect()),
        repetitions: None,
    };
    let unknown = repeat::Wanted::new(study, tables(&["table99"])).err();
    assert!(unknown.is_some_and(|error| told(error).contains("has no table `table99`; its tables are")));
    let often = crate::api::NewStudy { tables: None, repetitions: Some(0) };
    assert!(repeat::Wanted::new(study, often).is_err());
    assert!(repeat::Wanted::new(study, tables(&[study.tables[0].name])).is_ok());
}
