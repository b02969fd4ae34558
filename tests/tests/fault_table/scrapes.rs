//! The rounds of row 19, with clients that request metrics without a pause.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use flitcast_tests::Running;
use flitcast_tests::background::Background;
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::processes::{processor_time, until};
use flitcast_tests::scrape::{address, scrape};

use crate::{alone, slack, within};

/// Starts a client that repeats its request after each answer.
fn scraper(address: SocketAddr) -> Background {
    Background::start(1, move |shared| {
        while !shared.is_over() {
            shared.count(u64::from(scrape(address).is_some()));
        }
    })
}

/// Rounds with and without scraping alternate, each PE scraped by two clients, over links of 200
/// Mbit/s, so that rounds are compared and not the use of cores. The processor time of the answers
/// has a separate bound, and so has their number.
#[test]
fn row_19_a_round_beside_scrapers() {
    let _alone = alone();
    let cluster = Joining::new(&[0, 1], "60s");
    let mut nodes = cluster.nodes("--stay --metrics 127.0.0.1:0");
    let at: Vec<SocketAddr> = nodes.iter_mut().map(address).collect();
    let round = || {
        let line = "gather --size 1MiB --link rate=200mbit --rounds 10 --format json";
        let finished = cluster.guarded(line).finish().ok();
        finished.report().float("/round/measured_us/median")
    };
    let pids: Vec<u32> = nodes.iter().map(Running::pid).collect();
    let spent = || pids.iter().map(|&pid| processor_time(pid));
    let (began, before): (_, Vec<Duration>) = (Instant::now(), spent().collect());
    let scrapers: Vec<Background> = at.iter().map(|&at| scraper(at)).collect();
    for scraper in &scrapers {
        until("thirty answers", || scraper.counted() >= 30);
    }
    let answering = spent().zip(before).map(|(after, before)| after - before);
    let share =
        answering.max().expect("there are PEs").as_secs_f64() / began.elapsed().as_secs_f64();
    for scraper in scrapers {
        scraper.end();
    }
    let (limit, mut pace) = (1.02 * slack(), 0.0_f64);
    let ratio = within(limit, || {
        let calm = round();
        let began = Instant::now();
        let scrapers: Vec<Background> = at.iter().chain(&at).map(|&at| scraper(at)).collect();
        let scraped = round();
        let answers: u64 = scrapers.into_iter().map(Background::end).sum();
        assert!(answers > 0, "nobody was answered");
        // A single request is answered at once.
        let later = answers as f64 / at.len() as f64 - 1.0;
        pace = pace.max(later / began.elapsed().as_secs_f64());
        scraped / calm
    });
    dismiss(nodes);
    println!("| 19 | a round beside scrapers takes | x {ratio:.3} | x 1.02 |");
    println!("| 19 | answers of a PE in a second, at most | {pace:.1} | 20 |");
    println!("| 19 | what they take of a core | {share:.4} | 0.02 |");
    assert!(pace <= 20.0, "{pace} answers a second");
    assert!(share < 0.02 * slack(), "{share} of a core");
    assert!(ratio < limit, "x {ratio:.3}");
}
