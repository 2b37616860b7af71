//! What is committed is what the code says, and the book builds from it.

#[test]
fn references_are_what_the_code_says() {
    if let Err(problem) = trunkline_references::check() {
        panic!("{problem}");
    }
}

#[test]
fn the_book_builds() {
    let folder = tempfile::tempdir().expect("a folder");
    trunkline_references::book(Some(folder.path())).expect("the book builds");
    assert!(folder.path().join("index.html").is_file(), "it has a first page");
}
