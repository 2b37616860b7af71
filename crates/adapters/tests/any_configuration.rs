//! Whatever the options and the path: what was sent arrives, in order and once.

use proptest::prelude::*;
use trunkline_adapters::{CongestionControl, TcpConfig, TcpEndpoint};
use trunkline_core::{Duration, Rate, Seed};
use trunkline_testkit::cases::cases;
use trunkline_testkit::conformance::transfer;
use trunkline_testkit::pair::{FAR, NEAR, Pair, Path, Side};
use trunkline_transport::Event;

fn config() -> impl Strategy<Value = TcpConfig> {
    let congestion_control = prop::sample::select(CongestionControl::ALL.to_vec());
    let size = || prop_oneof![1..100usize, 100..70_000usize];
    (size(), size(), 48..3000usize, any::<bool>(), congestion_control).prop_map(
        |(window, send_buffer, mss, nodelay, congestion_control)| TcpConfig {
            window,
            send_buffer,
            mss,
            nodelay,
            congestion_control,
            timeout: None,
        },
    )
}

fn path() -> impl Strategy<Value = Path> {
    let chance = || prop_oneof![Just(0.0), 0.0..0.15];
    let rate = prop::option::of(100_000..10_000_000u64);
    (0..200u64, rate, chance(), chance(), chance(), chance()).prop_map(
        |(latency, rate, loss, duplicate, reorder, corrupt)| Path {
            rate: rate.map(Rate::from_bits_per_second),
            loss,
            duplicate,
            reorder,
            corrupt,
            ..Path::with_latency(Duration::from_millis(latency))
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]
    #[test]
    fn everything_arrives_in_order_and_once(
        near in config(), far in config(), out in path(), back in path(), seed: u64,
        sizes in prop::collection::vec(0..3000usize, 1..12),
    ) {
        let near = TcpEndpoint::connect(NEAR, FAR, &near, seed).unwrap();
        let far = TcpEndpoint::listen(FAR, &far, !seed).unwrap();
        let mut pair = Pair::new(Box::new(near), Box::new(far), [out, back], Seed::new(seed, 0));
        pair.drive();
        prop_assert!(pair.take_event(Side::Near, Event::Connected));
        let messages: Vec<Vec<u8>> = sizes.iter().zip(0..).map(|(&size, n)| vec![n; size]).collect();
        prop_assert!(transfer(&mut pair, Side::Near, &messages).concat() == messages.concat());
    }
}
