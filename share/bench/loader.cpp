#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>

#include <hortator/datasets/tensor_dataset.hpp>
#include <hortator/error.hpp>
#include <hortator/training/random.hpp>

#include "bench/measurements.hpp"
#include "core/range.hpp"
#include "core/text/text.hpp"

namespace hortator::bench {
namespace {

// The same work is used to time the loaders of other frameworks.
constexpr std::int64_t samples = 8192;
constexpr std::int64_t batch_size = 64;

/// The same rows, read one by one and stacked: the cost of a data set without get_batch().
struct RowByRow {
  TensorDataset<2> rows;
  std::int64_t size() const { return rows.size(); }
  Example<> get(std::int64_t i) const { return rows.get(i); }
};

/// One way of reading the samples.
struct Reader {
  std::string name;
  std::string what;
  std::function<void()> pass;  ///< one pass over this rank's samples, shuffled again
};

// New memory for a batch costs time: the system may have to clear its pages first.
std::vector<Reader> references_for(const at::Tensor& x, const at::Tensor& y, const Accelerator& accelerator) {
  const auto share = core::balanced(samples, accelerator.num_processes(), accelerator.process_index());
  const auto each_batch = [share](const auto& take) {
    const auto mine = at::randperm(samples, at::TensorOptions(at::kLong)).narrow(0, share.begin, share.size());
    for (const auto& rows : mine.split(batch_size)) take(rows);
  };
  auto data = at::empty({0}, x.options());
  auto target = at::empty({0}, y.options());
  return {{"bare", "bare index_select on each rank, a pass over its share",
           [=] {
             each_batch([&](const at::Tensor& rows) {
               const auto batch = std::pair(x.index_select(0, rows), y.index_select(0, rows));
             });
           }},
          {"bare_kept", "the same into the same memory again and again", [=]() mutable {
             each_batch([&](const at::Tensor& rows) {
               at::index_select_out(data, x, 0, rows);
               at::index_select_out(target, y, 0, rows);
             });
           }}};
}

Result compare(Accelerator& accelerator, const Plan& plan, const Reader& reader, const Reader& reference) {
  const Sides sides = {
      .ours = reader.pass, .reference = reference.pass, .line_up = [&] { accelerator.wait_for_everyone(); }};
  Result result{.name = "loader",
                .params = {{"case", reader.name},
                           {"reads", reader.what},
                           {"beside", reference.name},
                           {"samples", samples},
                           {"batch_size", batch_size},
                           {"ranks", accelerator.num_processes()},
                           {"threads", at::get_num_threads()},
                           {"steps", plan.steps}},
                .reference = reference.what,
                .timing = time_in_pairs(sides, plan)};
  result.samples_per_s = static_cast<double>(samples) / result.timing.ours.median_s;
  return result;
}

template <typename Dataset>
std::function<void()> pass_of(Accelerator& accelerator, const Dataset& dataset, int prefetch, int workers) {
  const auto loader = accelerator.prepare(data_loader(
      dataset,
      {.batch_size = batch_size, .shuffle = true, .drop_last = true, .prefetch = prefetch, .workers = workers}));
  return [loader] {
    std::int64_t seen = 0;
    for (const auto& batch : loader) seen += batch.data.size(0);
    if (seen != loader.size() * batch_size) throw Error({.what = text::concat("A pass returned ", seen, " samples")});
  };
}

std::vector<Reader> readers_of(Accelerator& accelerator, const TensorDataset<2>& rows) {
  const LoaderOptions usual;
  return {
      {"rows", "rows copied by get_batch()", pass_of(accelerator, rows, usual.prefetch, usual.workers)},
      {"in_loop", "the same, nothing read ahead", pass_of(accelerator, rows, 0, 1)},
      {"workers", "the same by two workers", pass_of(accelerator, rows, 4, 2)},
      {"samples", "rows one by one, stacked", pass_of(accelerator, RowByRow{rows}, usual.prefetch, usual.workers)},
  };
}

std::vector<Reader> selected(std::vector<Reader> readers, const Selection& selection) {
  std::vector<std::string> names;
  for (const auto& reader : readers) names.push_back(reader.name);
  check_known("--case", selection.cases, names);
  std::erase_if(readers, [&](const Reader& reader) { return !selection.wants(reader.name); });
  return readers;
}

}  // namespace

std::vector<Result> loader(Accelerator& accelerator, const Plan& plan, const Selection& selection) {
  set_seed(1);
  const auto x = at::randn({samples, 3, 32, 32});
  const auto y = at::randint(10, {samples}, at::kLong);
  const auto references = references_for(x, y, accelerator);
  std::vector<Result> results;
  for (const auto& reader : selected(readers_of(accelerator, tensor_dataset(x, y)), selection)) {
    for (const auto& reference : references) results.push_back(compare(accelerator, plan, reader, reference));
  }
  accelerator.free_memory();
  return results;
}

}  // namespace hortator::bench
