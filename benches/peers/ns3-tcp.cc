// The lane `tcp` of `cargo xtask peers` in ns-3 (Debian's libns3-dev): downloads with CUBIC over one 100 Mbit/s link of 20 ms with a
// FIFO of 250 packets. Prints the bytes that arrived and the wall-clock seconds that the simulation took.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

int main(int argc, char **argv) {
    const uint32_t transfers = argc > 1 ? std::atoi(argv[1]) : 16;
    const double seconds = argc > 2 ? std::atof(argv[2]) : 30;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6 << 20));

    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("100Mbps"));
    link.SetChannelAttribute("Delay", StringValue("20ms"));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("250p"));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.1.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

    ApplicationContainer sinks;
    for (uint32_t transfer = 0; transfer < transfers; ++transfer) {
        const uint16_t port = 5000 + transfer;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sinks.Add(sink.Install(nodes.Get(1)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(interfaces.GetAddress(1), port));
        source.SetAttribute("SendSize", UintegerValue(8192));
        source.Install(nodes.Get(0));
    }
    Simulator::Stop(Seconds(seconds));

    const auto started = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    uint64_t bytes = 0;
    for (uint32_t transfer = 0; transfer < transfers; ++transfer) {
        bytes += DynamicCast<PacketSink>(sinks.Get(transfer))->GetTotalRx();
    }
    std::cout << bytes << " " << took.count() << std::endl;
    Simulator::Destroy();
}
