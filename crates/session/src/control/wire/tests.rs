use proptest::prelude::*;

use super::*;
use crate::request::Role;

#[test]
fn what_is_said_is_read() {
    let request =
        Request::new(Role::Echo, "{ kind = \"dccp\", congestion-control = \"ccid-3\" }".parse().unwrap());
    let said = [
        ToServer::Hello(Box::new(Hello { version: VERSION, request })),
        ToServer::Ask { sent: Time::from_nanos(5) },
        ToServer::Bye,
    ];
    let mut bytes = Vec::new();
    said.iter().for_each(|what| write(what, &mut bytes));
    let mut lines = Lines::default();
    lines.push(&bytes);
    for what in said {
        assert_eq!(read::<ToServer>(lines.next().unwrap().unwrap()), Ok(what));
    }
    assert_eq!(lines.next(), Ok(None));
}

#[test]
fn a_version_is_read_whatever_stands_beside_it() {
    assert_eq!(version_of(br#"{"say":"hello","version":7,"request":[1]}"#), Some(7));
    assert_eq!(version_of(b"GET / HTTP/1.1"), None);
}

#[test]
fn a_line_without_end_costs_no_more_than_the_longest() {
    let mut lines = Lines::default();
    for _ in 0..100 {
        lines.push(&[b'x'; 1000]);
    }
    assert_eq!(lines.bytes.len(), LONGEST + 1);
    assert_eq!(lines.next(), Err(TooLong));
}

proptest! {
    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        fuzz_lines(&bytes);
    }

    /// Of a line that is nearly right, nothing makes a reader panic either.
    #[test]
    fn no_change_of_a_line_makes_a_reader_panic(at in 0..200usize, bytes in proptest::collection::vec(any::<u8>(), 0..4)) {
        let request = Request::new(Role::Echo, "{ kind = \"sctp\", window = \"64 KiB\" }".parse().unwrap());
        let mut line = Vec::new();
        write(&ToServer::Hello(Box::new(Hello { version: VERSION, request })), &mut line);
        let at = at % line.len();
        line.splice(at..(at + bytes.len()).min(line.len()), bytes);
        fuzz_lines(&line);
    }

    /// Lines come out whole however they arrive.
    #[test]
    fn lines_are_found_in_any_pieces(
        texts in proptest::collection::vec("[a-z]{0,20}", 0..10),
        piece in 1..30usize,
    ) {
        let all: String = texts.iter().flat_map(|text| [text.as_str(), "\n"]).collect();
        let mut lines = Lines::default();
        let mut found = Vec::new();
        for piece in all.as_bytes().chunks(piece) {
            lines.push(piece);
            while let Some(line) = lines.next().unwrap() {
                found.push(String::from_utf8(line.to_vec()).unwrap());
            }
        }
        prop_assert_eq!(found, texts);
    }
}
