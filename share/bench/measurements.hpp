#pragma once

#include <cstdint>
#include <hortator/accelerator.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "bench/report.hpp"
#include "mpi/communicator.hpp"

namespace hortator::bench {

/// Selects the cases of a benchmark; an empty list selects all.
struct Selection {
  std::vector<std::string> cases = {};   ///< operations, workloads
  std::vector<std::int64_t> sizes = {};  ///< bytes of a rank's whole buffer
  std::vector<std::string> types = {};   ///< "float32", "bfloat16", ...
  std::vector<std::string> backends = {};
  std::vector<std::string> references = {};

  bool wants(std::string_view name) const;  ///< whether case `name` is selected
};

/// Throws UsageError with the nearest known value for an unknown value of the option.
void check_known(const std::string& option, const std::vector<std::string>& values,
                 const std::vector<std::string>& known);

/// Loads a folder of Hugging Face's transformers of about that size with a cold page cache. @collective
Result load_pretrained(const mpi::Communicator& comm, std::int64_t bytes, const Plan& plan);

/// A verb of `hortator bench`; all ranks run it together.
struct Measurement {
  std::string name;
  std::string summary;
  /// @collective
  std::vector<Result> (*run)(Accelerator& accelerator, const Plan& plan, const Selection& selection);
};

const std::vector<Measurement>& measurements();

std::vector<Result> step(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> ema(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> capture(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> loop(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> loss(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> checkpoint(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> memory_checkpoints(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> loader(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> paging(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> partner_load(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> pipeline(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> record(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> reports(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> reproducible(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> tensor(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> weights(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> gathers(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> infer(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> hooks(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> zero(Accelerator& accelerator, const Plan& plan, const Selection& selection);
std::vector<Result> collectives(Accelerator& accelerator, const Plan& plan, const Selection& selection);

}  // namespace hortator::bench
