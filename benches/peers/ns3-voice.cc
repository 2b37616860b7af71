// The scenario of benches/src/bin/simulator.rs in ns-3 (Debian's libns3-dev): voice channels of 80 bytes every 10 ms over
// one 200 Mbit/s link. Prints the packets received and the wall-clock seconds that the simulation took.
#include <chrono>
#include <cstdlib>
#include <iostream>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

int main(int argc, char **argv) {
    const uint32_t channels = argc > 1 ? std::atoi(argv[1]) : 1000;
    const double seconds = argc > 2 ? std::atof(argv[2]) : 60;

    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("200Mbps"));
    link.SetChannelAttribute("Delay", StringValue("20ms"));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.1.1.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

    UdpServerHelper server(9);
    ApplicationContainer sink = server.Install(nodes.Get(1));
    sink.Start(Seconds(0));
    UdpClientHelper client(interfaces.GetAddress(1), 9);
    client.SetAttribute("MaxPackets", UintegerValue(4000000000u));
    client.SetAttribute("Interval", TimeValue(MilliSeconds(10)));
    client.SetAttribute("PacketSize", UintegerValue(80));
    for (uint32_t channel = 0; channel < channels; ++channel) {
        ApplicationContainer source = client.Install(nodes.Get(0));
        source.Start(MicroSeconds(10000 * channel / channels));
        source.Stop(Seconds(seconds));
    }
    Simulator::Stop(Seconds(seconds + 1));

    const auto started = std::chrono::steady_clock::now();
    Simulator::Run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    std::cout << DynamicCast<UdpServer>(sink.Get(0))->GetReceived() << " " << took.count() << std::endl;
    Simulator::Destroy();
}
