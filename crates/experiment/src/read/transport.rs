//! Reads a transport by itself, as a command line names it.

use trunkline_transport::{dccp, sctp, xtp};

use super::Reader;
use super::table::Chosen;
use crate::files::Shelf;
use crate::model::{SctpEngine, Transport};
use crate::problem::Remark;
use crate::schema::{Schema, transport};
use crate::tree;

impl Transport {
    /// Reads a transport as it stands in an experiment file: a name (`udp`, with or without quotation marks), or a table
    /// (`{ kind = "dccp", congestion-control = 3 }`).
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
    let (schema, shelf) = (Schema::new(), Shelf::new(&()));
    let mut reader = Reader { schema: &schema, shelf: &shelf, remarks: Vec::new() };
    let chosen = reader.choice(&table, &root.span, "", "transport");
    let kind = chosen.as_ref().and_then(|chosen| transport::KINDS.get(chosen.index));
    let (Some(chosen), Some(kind)) = (chosen, kind) else { return Err(reader.remarks) };
    let read = (kind.read)(&chosen.values);
    reader.check_options(&read, &chosen);
    match reader.remarks.is_empty() {
        true => Ok(within_udp(read, &chosen)),
        false => Err(reader.remarks),
    }
}

/// Moves packets into UDP if nothing is said of what carries them.
fn within_udp(mut transport: Transport, chosen: &Chosen) -> Transport {
    if chosen.table.as_ref().is_some_and(|table| table.get("encapsulation").is_some()) {
        return transport;
    }
    match &mut transport {
        Transport::Dccp(options) => options.encapsulation = dccp::Encapsulation::Udp,
        Transport::Xtp(options) => options.encapsulation = xtp::Encapsulation::Udp,
        Transport::Sctp(options) if options.engine == SctpEngine::Own => {
            options.encapsulation = sctp::Encapsulation::Udp;
        }
        _ => {}
    }
    transport
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_transport_with_its_defaults() {
        assert!(matches!(Transport::parse(" udp "), Ok(Transport::Udp(_))));
        assert!(matches!(Transport::parse("\"udp-lite\""), Ok(Transport::UdpLite(_))));
        for kind in transport::KINDS {
            assert!(Transport::parse(kind.name).is_ok(), "{}", kind.name);
        }
    }

    #[test]
    fn a_table_chooses_options() {
        let Ok(Transport::Dccp(options)) =
            Transport::parse("{ kind = \"dccp\", congestion-control = \"ccid-3\" }")
        else {
            panic!("not read");
        };
        assert_eq!((options.ccid, options.encapsulation), (dccp::Ccid::Tfrc, dccp::Encapsulation::Udp));
        let Ok(Transport::Sctp(options)) = Transport::parse("{kind=\"sctp\", encapsulation=\"ip\"}") else {
            panic!("not read");
        };
        assert_eq!(options.encapsulation, sctp::Encapsulation::Ip);
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
        assert!(said("7").starts_with("there is no transport `7`; known are `udp`, "));
        assert_eq!(said("\"udp\"\nseed = 3"), "a transport must be on one line");
        assert!(
            said("{ kind = \"sctp\", lifetime = \"1 s\", retransmissions = 1 }").contains("leave one out")
        );
    }
}
