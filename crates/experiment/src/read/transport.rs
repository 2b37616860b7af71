//! Reads a transport by itself, as a command line names it.

use trunkline_core::schema::{Kind, Value};
use trunkline_transport::kind::Sockets;

use super::Reader;
use super::table::Chosen;
use crate::files::Shelf;
use crate::problem::Remark;
use crate::schema::Schema;
use crate::transport::Transport;
use crate::tree;

impl Transport {
    /// Reads a transport as it stands in an experiment file: a name (`udp`, with or without quotation marks), or a table
    /// (`{ kind = "dccp", congestion-control = "ccid-3" }`).
    ///
    /// Where a protocol has the choice, its packets travel within UDP instead of as protocols of IP, which need raw
    /// sockets, unless the text says otherwise.
    ///
    /// # Errors
    /// What is wrong with it, in sentences.
    pub fn parse(text: &str) -> Result<Transport, String> {
        let text = text.trim();
        let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        let document = match is_word {
            true => format!("transport = \"{text}\""),
            // One value only: a line of its own could begin another key.
            false if text.contains(['\n', '\r']) => return Err("a transport must be on one line".to_owned()),
            false => format!("transport = {text}"),
        };
        read(&document).map_err(|remarks| {
            let messages: Vec<String> = remarks.into_iter().map(|remark| remark.message).collect();
            messages.join("; ")
        })
    }
}

fn read(document: &str) -> Result<Transport, Vec<Remark>> {
    let root = tree::parse(document)?;
    let table = root.table().cloned().unwrap_or_default();
    let (schema, shelf) = (Schema::default(), Shelf::new(&()));
    let mut reader = Reader { schema: &schema, shelf: &shelf, remarks: Vec::new() };
    let chosen = reader.choice(&table, &root.span, "", "transport");
    let read = chosen.as_ref().and_then(|chosen| reader.transport(chosen));
    let (Some(chosen), Some(read)) = (chosen, read) else { return Err(reader.remarks) };
    match reader.remarks.is_empty() {
        true => Ok(within_udp(read, &chosen)),
        false => Err(reader.remarks),
    }
}

/// Moves packets into UDP if nothing is said of what carries them.
fn within_udp(transport: Transport, chosen: &Chosen) -> Transport {
    const KEY: &str = "encapsulation";
    const UDP: &str = "udp";
    let is_given = chosen.table.as_ref().is_some_and(|table| table.get(KEY).is_some());
    let parameter = transport.kind().parameters.iter().find(|parameter| parameter.name == KEY);
    let offers_udp = parameter.is_some_and(
        |parameter| matches!(parameter.kind, Kind::Choice(words) if words.iter().any(|word| word.name == UDP)),
    );
    match is_given || !offers_udp || !matches!(transport.sockets(), Sockets::Carried(_)) {
        true => transport,
        false => transport.with(KEY, Value::Text(UDP.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use trunkline_transport::kind::Carrier;

    use super::*;
    use crate::transport::TRANSPORTS;

    #[test]
    fn a_name_is_a_transport_with_its_defaults() {
        assert_eq!(Transport::parse(" udp ").unwrap().kind().name, "udp");
        for kind in TRANSPORTS {
            let written = format!("\"{}\"", kind.name);
            assert_eq!(Transport::parse(kind.name), Transport::parse(&written));
            assert_eq!(Transport::parse(kind.name).unwrap().kind().name, kind.name);
        }
    }

    #[test]
    fn a_table_chooses_options() {
        let carried = |text: &str| Transport::parse(text).unwrap().sockets();
        let dccp = "{ kind = \"dccp\", congestion-control = \"ccid-3\" }";
        assert_eq!(carried(dccp), Sockets::Carried(Carrier::Udp));
        assert_ne!(Transport::parse(dccp), Transport::parse("dccp"));
        let over_ip = Sockets::Carried(Carrier::Ip { protocol: 132, has_ports: true });
        assert_eq!(carried("{kind=\"sctp\", encapsulation=\"ip\"}"), over_ip);
        assert!(Transport::parse("{ kind = \"sctp\", engine = \"kernel\" }").is_ok());
    }

    #[test]
    fn what_is_wrong_is_told_in_a_sentence() {
        let said = |text: &str| Transport::parse(text).unwrap_err();
        assert_eq!(said("udb"), "there is no transport `udb`; did you mean `udp`?");
        assert!(said("{ kind = \"tcp\", windo = \"1 KiB\" }").contains("did you mean `window`?"));
        assert!(
            said("{ kind = \"dccp\", congestion-control = 9 }").starts_with("`congestion-control` must be ")
        );
        assert!(said("{ kind = \"udp\"").starts_with("not TOML: "), "{}", said("{ kind = \"udp\""));
        assert!(said("").starts_with("not TOML: "));
        assert!(said("7").starts_with("there is no transport `7`; known: `udp`, "));
        assert_eq!(said("\"udp\"\nseed = 3"), "a transport must be on one line");
        assert!(
            said("{ kind = \"sctp\", lifetime = \"1 s\", retransmissions = 1 }").contains("leave one out")
        );
    }
}
