use std::io::ErrorKind;

use nix::sched::{CloneFlags, unshare};

use super::super::namespace::on_a_thread;
use super::*;
use trunkline_testkit::skips::{Missing, skip_without};

#[test]
fn a_table_goes_with_its_socket() {
    on_a_thread(|| {
        if let Err(why) = unshare(CloneFlags::CLONE_NEWNET) {
            return skip_without(Missing::Namespaces, &format!("a network namespace cannot be made: {why}"));
        }
        let make = || table("tl-1-", &["lo".to_owned()]).commit();
        let owned = match make() {
            Ok(owned) => owned,
            Err(why) => return skip_without(Missing::Nftables, &format!("nftables refuses a table: {why}")),
        };
        assert_eq!(make().unwrap_err().kind(), ErrorKind::PermissionDenied, "it is another socket's");
        drop(owned);
        make().expect("it has gone");
    });
}

#[test]
fn interfaces_forward_for_as_long_as_the_way_is_open() {
    on_a_thread(|| {
        if let Err(why) = unshare(CloneFlags::CLONE_NEWNET) {
            return skip_without(Missing::Namespaces, &format!("a network namespace cannot be made: {why}"));
        }
        let pair = std::process::Command::new("ip").args(["link", "add", "up0", "type", "veth"]).status();
        assert!(pair.expect("ip is there").success());
        let forwards = || !settings::not_forwarding().unwrap().contains(&"up0".to_owned());
        let before = settings::not_forwarding().unwrap();
        assert!(!forwards());
        let mut remembered = Vec::new();
        let opened = WayOut::open("tl-1-", &mut |key, value| {
            remembered.push(format!("{key}={value}"));
            Ok(())
        });
        let way_out = match opened {
            Ok(way_out) => way_out,
            Err(why) => return skip_without(Missing::Nftables, &format!("nftables refuses a table: {why}")),
        };
        assert!(forwards());
        assert!(remembered.contains(&"ipv4/conf/up0/forwarding=0".to_owned()), "{remembered:?}");
        drop(way_out);
        assert_eq!(settings::not_forwarding().unwrap(), before);
    });
}
