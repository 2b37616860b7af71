// A cell of the bench `matrix` in ns-3 (Debian's libns3-dev): TCP transfers and a call of 80 bytes every 10 ms over one line, for 30 s.
// Arguments: Mbit/s, round trip in ms, queue and its parameter, transfers, congestion control, loss in per cent, bytes of a transfer (0: no
// end), ECN (0 or 1), run. Prints the figures as JSON. Its line has a header of 2 bytes, where the others have 14.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static const double SECONDS = 30;
static const uint32_t CALL_PACKETS = 3000;

static std::vector<double> delays;
static std::vector<uint64_t> delivered;
static double last = 0;
static uint64_t repeated = 0;
static std::map<const TcpSocketBase *, SequenceNumber32> highest;

static void called(Ptr<const Packet> packet) {
    SeqTsHeader header;
    packet->PeekHeader(header);
    delays.push_back((Simulator::Now() - header.GetTs()).GetSeconds() * 1000);
}

static void received(uint32_t transfer, Ptr<const Packet> packet, const Address &) {
    if (Simulator::Now().GetSeconds() <= SECONDS) {
        delivered[transfer] += packet->GetSize();
        last = Simulator::Now().GetSeconds();
    }
}

static void sent(Ptr<const Packet> packet, const TcpHeader &header, Ptr<const TcpSocketBase> socket) {
    if (packet->GetSize() == 0) {
        return;
    }
    const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
    auto [place, isNew] = highest.emplace(PeekPointer(socket), end);
    if (isNew) {
        return;
    }
    if (end <= place->second) {
        ++repeated;
    } else {
        place->second = end;
    }
}

static void watch() {
    Config::ConnectWithoutContext("/NodeList/0/$ns3::TcpL4Protocol/SocketList/*/Tx", MakeCallback(&sent));
}

static double at(double share) {
    const size_t rank = std::ceil(delays.size() * share);
    return delays[std::min(std::max<size_t>(rank, 1), delays.size()) - 1];
}

int main(int argc, char **argv) {
    if (argc != 11) {
        std::cerr << "ten arguments are needed" << std::endl;
        return 2;
    }
    const std::string rate = argv[1], queue = argv[3], control = argv[6];
    const double roundTrip = std::atof(argv[2]), parameter = std::atof(argv[4]), loss = std::atof(argv[7]);
    const uint32_t transfers = std::atoi(argv[5]);
    const uint64_t volume = std::strtoull(argv[8], nullptr, 10);
    const bool usesEcn = std::string(argv[9]) == "1";
    RngSeedManager::SetRun(std::atoi(argv[10]));
    const std::map<std::string, TypeId> controls = {
        {"cubic", TcpCubic::GetTypeId()},
        {"reno", TcpLinuxReno::GetTypeId()},
        {"bbr", TcpBbr::GetTypeId()},
        {"dctcp", TcpDctcp::GetTypeId()},
    };
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(controls.at(control)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(6 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    if (usesEcn) {
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    }

    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue(rate + "Mbps"));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(roundTrip * 500)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1p"));
    NetDeviceContainer devices = link.Install(nodes);
    if (loss > 0) {
        Ptr<RateErrorModel> errors = CreateObject<RateErrorModel>();
        errors->SetAttribute("ErrorRate", DoubleValue(loss / 100));
        errors->SetAttribute("ErrorUnit", StringValue("ERROR_UNIT_PACKET"));
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }
    InternetStackHelper().Install(nodes);
    TrafficControlHelper discipline;
    if (queue == "fifo") {
        const std::string limit = std::to_string(static_cast<uint64_t>(parameter)) + "B";
        discipline.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(limit));
    } else if (queue == "codel") {
        discipline.SetRootQueueDisc("ns3::CoDelQueueDisc", "MaxSize", StringValue("1000p"), "UseEcn", BooleanValue(usesEcn));
    } else if (queue == "fq-codel") {
        discipline.SetRootQueueDisc("ns3::FqCoDelQueueDisc");
    } else if (queue == "marking") {
        discipline.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "CeThreshold", TimeValue(MicroSeconds(parameter * 1000)));
    } else {
        discipline.SetRootQueueDisc("ns3::PieQueueDisc", "MaxSize", StringValue("1000p"));
    }
    discipline.Install(devices);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.1.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    const Ipv4Address server = interfaces.GetAddress(1);

    delivered.assign(transfers, 0);
    for (uint32_t transfer = 0; transfer < transfers; ++transfer) {
        const uint16_t port = 5000 + transfer;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        sink.Install(nodes.Get(1)).Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&received, transfer));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(server, port));
        source.SetAttribute("SendSize", UintegerValue(8192));
        source.SetAttribute("MaxBytes", UintegerValue(volume));
        source.Install(nodes.Get(0));
    }
    UdpServerHelper listener(9);
    listener.Install(nodes.Get(1)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&called));
    UdpClientHelper client(server, 9);
    client.SetAttribute("MaxPackets", UintegerValue(CALL_PACKETS));
    client.SetAttribute("Interval", TimeValue(MilliSeconds(10)));
    client.SetAttribute("PacketSize", UintegerValue(80));
    client.Install(nodes.Get(0));
    Simulator::Schedule(MicroSeconds(1), &watch);
    Simulator::Stop(Seconds(SECONDS + 1));
    Simulator::Run();

    std::sort(delays.begin(), delays.end());
    double sum = 0, squares = 0, waited = 0;
    for (uint64_t bytes : delivered) {
        sum += bytes;
        squares += static_cast<double>(bytes) * bytes;
    }
    for (double delay : delays) {
        waited += delay;
    }
    const double time = volume == 0 ? SECONDS : last;
    std::cout << "{\"goodput\":" << sum * 8 / time / 1e6 << ",\"completion\":" << (volume == 0 ? 0 : last * 1000)
              << ",\"mean\":" << waited / delays.size() << ",\"p95\":" << at(0.95) << ",\"p99\":" << at(0.99)
              << ",\"loss\":" << 100 * (1 - static_cast<double>(delays.size()) / CALL_PACKETS)
              << ",\"fairness\":" << sum * sum / (squares * transfers) << ",\"retransmitted\":" << repeated << "}" << std::endl;
    Simulator::Destroy();
}
