#pragma once

#include <functional>
#include <hortator/detail/batch_source.hpp>
#include <memory>

#include "data/loader/dispatcher.hpp"
#include "data/loader/step_reader.hpp"

/// The ways in which batches come to a rank. Each call is for the next step, from any one thread at a time.
namespace hortator::data {

using Deliver = std::function<Delivery(std::int64_t step)>;

/// By reading them itself.
Deliver read_alone(std::shared_ptr<StepReader> reader, int rank);

/// By reading those of all ranks of its node, and sending the others theirs. What goes wrong is sent as well.
/// `is_sized`: the others know by themselves how many steps there are.
Deliver read_for_node(std::shared_ptr<StepReader> reader, const BatchSource& source, Dispatcher& dispatcher,
                      std::uint64_t pass, bool is_sized);

/// From the rank that reads for its node.
Deliver receive(const BatchSource& source, Dispatcher& dispatcher, std::uint64_t pass);

}  // namespace hortator::data
