//! Published studies: shown as published, repeated, and what was found is kept.

mod common;

use common::TestServer;
use serde_json::{Value, json};
use trunkline_server::api;

fn study(server: &TestServer, name: &str) -> api::Study {
    serde_json::from_value(server.get(&format!("/api/v1/papers/{name}")).json())
        .expect("as the API describes it")
}

fn table<'s>(study: &'s api::Study, name: &str) -> &'s api::PaperTable {
    study.tables.iter().find(|table| table.name == name).expect("as the API describes it")
}

#[test]
fn studies_are_shown_with_their_files_before_anything_is_repeated() {
    let server = TestServer::start();
    let papers: Vec<api::Paper> = serde_json::from_value(server.get("/api/v1/papers").json()).unwrap();
    assert_eq!(papers.len(), 4);
    for paper in papers {
        let shown = study(&server, &paper.name);
        assert_eq!(shown.tables.len(), paper.tables.len());
        assert!(shown.job.is_none() && shown.tables.iter().all(|table| !table.here));
        // The program comes with values of ours: on a first visit there are figures.
        assert!(paper.classes.iter().any(|of_class| of_class.median.is_some()), "{}", paper.name);
        assert!(paper.goals.iter().any(|goal| goal.met.is_some()), "{}", paper.name);
        assert!(shown.tables.iter().any(|table| table.ours), "{}", paper.name);
        assert_eq!(shown.real_time.is_empty(), paper.name != "schiavoni2013", "{}", paper.name);
        let file = shown.files[0].replace('/', "%2F");
        let reply = server.get(&format!("/api/v1/papers/{}/files/{file}", paper.name));
        assert_eq!(reply.status, 200);
        assert!(!reply.body.is_empty() && reply.header("content-type").unwrap().starts_with("text/plain"));
        if paper.name == "hawley1989" {
            assert_eq!(shown.words.get("hfifo").map(String::as_str), Some("hardware FIFO"));
            assert_eq!(paper.figures[0].tables, ["throughput"]);
        }
        if let Some(figure) = paper.figures.first() {
            let path = format!("/api/v1/papers/{}/figures/{}.svg", paper.name, figure.name);
            let drawn = server.get(&path);
            assert_eq!((drawn.status, figure.ours), (200, true));
            assert!(drawn.text().contains("<svg"), "{path}");
        }
    }
    for missing in [
        "nobody",
        "hawley1989/files/none.toml",
        "hawley1989/figures/..%2Fresults.svg",
        "hawley1989/figures/x.gif",
    ] {
        assert_eq!(server.get(&format!("/api/v1/papers/{missing}")).status, 404, "{missing}");
    }
}

#[test]
fn what_is_found_is_kept_table_by_table_and_shown_by_the_next_server() {
    let place = tempfile::tempdir().unwrap();
    let mut server = TestServer::start_in(place.path(), |_| ());
    let begun =
        server.post("/api/v1/papers/weaver1992", &json!({ "tables": ["today_lan"], "repetitions": 1 }));
    assert_eq!(begun.status, 201, "{}", begun.text());
    let job = server.wait(&begun.json());
    assert_eq!((&job["state"], &job["kind"]), (&json!("done"), &json!("paper")), "{job}");
    assert!(job["progress"]["repetitions_done"].as_u64() > Some(0), "{job}");
    let path = format!("/api/v1/jobs/{}/result", begun.json()["job"].as_str().unwrap());
    let found: api::StudyResult = serde_json::from_value(server.get(&path).json()).unwrap();
    assert_eq!((found.tables.len(), found.stopped), (1, false));
    assert!(found.tables[0].ours);
    server.end().unwrap();

    let server = TestServer::start_in(place.path(), |_| ());
    let shown = study(&server, "weaver1992");
    let ours = |study: &api::Study| {
        let rows = table(study, "today_lan").rows.clone();
        rows.into_iter().flat_map(|row| row.cells).map(|cell| cell.ours).collect::<Vec<_>>()
    };
    assert!(ours(&shown).iter().any(Option::is_some) && table(&shown, "today_lan").here);
    // Another table leaves it as it is.
    let begun = server.post("/api/v1/papers/weaver1992", &json!({ "tables": ["table04"] })).json();
    assert_eq!(server.wait(&begun)["state"], "done");
    let both = study(&server, "weaver1992");
    assert_eq!(ours(&both), ours(&shown));
    assert!(table(&both, "table04").here);
    assert!(!table(&both, "table06").here);
    // Cells of the paper's tables have a class, ours have none, and the errors of each class are those of its cells.
    let has_class = |name: &str| {
        table(&both, name).rows.iter().flat_map(|row| &row.cells).any(|cell| cell.class.is_some())
    };
    assert_eq!((has_class("table04"), has_class("today_lan")), (true, false));
    let published = |cell: &&api::PaperCell| cell.published.is_some() && !cell.repeats;
    let rows = both.tables.iter().flat_map(|table| &table.rows);
    let cells: Vec<api::PaperCell> =
        rows.flat_map(|row| row.cells.iter().filter(published)).cloned().collect();
    for of_class in &both.paper.classes {
        let mine = cells.iter().filter(|cell| cell.class == Some(of_class.class));
        assert_eq!(mine.count(), of_class.cells, "{of_class:?}");
    }
    assert_eq!(both.paper.classes.iter().map(|of_class| of_class.cells).sum::<usize>(), cells.len());
    assert!(both.paper.classes.iter().any(|of_class| of_class.median.is_some()), "{:?}", both.paper.classes);
    assert!(both.constants > 0);

    let figure = &both.paper.figures[0].name;
    let reply = server.get(&format!("/api/v1/papers/weaver1992/figures/{figure}.svg"));
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("image/svg+xml")));
}

#[test]
fn a_study_stops_when_it_is_told_and_keeps_what_it_has() {
    let server = TestServer::start();
    let begun = server.post("/api/v1/papers/hawley1989", &json!({ "repetitions": 1000 })).json();
    let path = format!("/api/v1/jobs/{}", begun["job"].as_str().unwrap());
    let running = server.wait_until(&path, |job| job["progress"]["left_s"].is_number());
    assert_eq!(running["state"], "running");
    assert_eq!(study(&server, "hawley1989").job.as_deref(), begun["job"].as_str());
    // One at a time.
    assert_eq!(server.post("/api/v1/papers/hawley1989", &json!({})).status, 409);
    server.post(&format!("{path}/stop"), &json!({}));
    let job = server.wait(&begun);
    assert_eq!(job["state"], "stopped", "{job}");
    let result: Value = server.get(&format!("{path}/result")).json();
    assert_eq!(result["stopped"], true);
    assert!(study(&server, "hawley1989").job.is_none());
    let unknown = server.post("/api/v1/papers/hawley1989", &json!({ "tables": ["table99"] }));
    assert_eq!(unknown.status, 400);
    assert!(unknown.text().contains("its tables are"), "{}", unknown.text());
}
