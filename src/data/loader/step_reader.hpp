#pragma once

#include <c10/core/Event.h>

#include <cstdint>
#include <hortator/training/state_dict.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/sharding/batch_shard.hpp"

namespace hortator::data {

/// A batch as it comes to the rank that it is for.
struct Delivery {
  std::shared_ptr<void> batch = {};             ///< null: there is none for this rank
  std::int64_t new_rows = 0;                    ///< of the batch, where the rank reads a part of its own
  std::int64_t samples = endless;               ///< of the whole pass, once that is known
  std::shared_ptr<const StateDict> state = {};  ///< of the stream behind this step, if it says where it is
  std::optional<c10::Event> arrival = {};       ///< on the device, of a batch that is on its way there
};

/// Reads the batches of one pass.
class StepReader {
 public:
  virtual ~StepReader() = default;
  /// Those of `ranks` in one step. Streams are read in the order of the steps, which may leave out the first ones.
  virtual std::vector<Delivery> read(std::int64_t step, std::span<const int> ranks) = 0;
};

}  // namespace hortator::data
