#pragma once

#include <cstdint>
#include <vector>

/// Which samples move where: pure functions.
namespace hortator::simulation {

/// The rows that go to receiver number `receiver` of `receivers` from a giver of `count` samples, before which others
/// give `before`: together they get each sample once, in equal parts.
std::vector<std::int64_t> moving_rows(std::int64_t before, std::int64_t count, std::int64_t receivers,
                                      std::int64_t receiver);

}  // namespace hortator::simulation
