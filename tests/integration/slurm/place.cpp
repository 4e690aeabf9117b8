// Prints the position of each rank: rank, local rank, node, host and launcher.
#include <hortator/run.hpp>
#include <hortator/state.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "runtime/identity/launcher.hpp"
#include "runtime/world.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [] {
    const hortator::State state;
    const auto& topology = state.world().topology();
    const auto line =
        hortator::text::concat("rank ", topology.rank, " of ", topology.size, " is ", topology.local_rank, " of ",
                               topology.local_size, " on node ", topology.node, " of ", topology.nodes, " (",
                               state.host(), ", ", to_string(hortator::runtime::launcher().kind), ")\n");
    std::cout << line << std::flush;
  });
}
