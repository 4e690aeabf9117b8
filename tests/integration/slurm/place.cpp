// Says where each of its ranks is.
#include <hortator/run.hpp>
#include <hortator/state.hpp>
#include <iostream>

#include "core/text/text.hpp"
#include "runtime/launcher.hpp"
#include "runtime/world.hpp"

int main(int argc, char** argv) {
  return hortator::run(argc, argv, [] {
    const hortator::State state;
    const auto& place = state.world().topology();
    const auto line = hortator::text::concat("rank ", place.rank, " of ", place.size, " is ", place.local_rank, " of ",
                                             place.local_size, " on node ", place.node, " of ", place.nodes, " (",
                                             state.host(), ", ", to_string(hortator::runtime::launcher().kind), ")\n");
    std::cout << line << std::flush;
  });
}
