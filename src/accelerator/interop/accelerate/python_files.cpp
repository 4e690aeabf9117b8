#include "accelerator/interop/accelerate/python_files.hpp"

#include <hortator/error.hpp>
#include <limits>
#include <random>
#include <set>

#include "accelerator/interop/accelerate/folder.hpp"
#include "accelerator/interop/accelerate/python_dict.hpp"
#include "core/hash.hpp"
#include "core/text/text.hpp"

namespace hortator::accelerator {
namespace {

using checkpoint::Reader;
using formats::PickleValue;

std::vector<double> numbered_values(const StateDict& values, const std::string& prefix) {
  std::vector<double> numbers;
  for (std::size_t i = 0; values.contains(text::concat(prefix, "/", i)); ++i)
    numbers.push_back(values.get<double>(text::concat(prefix, "/", i)));
  return numbers;
}

PickleValue list_of(const std::vector<double>& numbers) {
  PickleValue::List items;
  for (const auto number : numbers) items.push_back({.content = number});
  return {.content = std::move(items)};
}

std::vector<double> rates_of(const StateDict& values, std::size_t optimizer) {
  std::vector<double> rates;
  for (std::size_t g = 0; values.contains(text::concat("optimizers/", optimizer, "/groups/", g, "/lr")); ++g)
    rates.push_back(values.get<double>(text::concat("optimizers/", optimizer, "/groups/", g, "/lr")));
  return rates;
}

constexpr std::size_t twister_size = 624;

/// A fresh state of the generator of Python and NumPy (MT19937), which this process has not used. Equal for equal keys.
PickleValue::List twister_state(std::uint64_t key) {
  std::mt19937_64 generator(key);
  PickleValue::List numbers;
  for (std::size_t i = 0; i < twister_size; ++i)
    numbers.push_back({.content = static_cast<std::int64_t>(generator() & std::numeric_limits<std::uint32_t>::max())});
  return numbers;
}

PickleValue python_random(std::uint64_t key) {
  auto numbers = twister_state(key);
  numbers.push_back({.content = static_cast<std::int64_t>(twister_size)});  // position: all were drawn
  return tuple_of({{.content = std::int64_t{3}}, tuple_of(std::move(numbers)), {}});
}

PickleValue numpy_random(std::uint64_t key) {
  return tuple_of({{.content = std::string("MT19937")},
                   {.content = twister_state(key)},
                   {.content = static_cast<std::int64_t>(twister_size)},
                   {.content = std::int64_t{0}},
                   {.content = 0.0}});
}

}  // namespace

// Python's schedules keep more values, but only these change with the steps; the others come from the constructor.
PythonFile schedule_for_python(const Reader& reader, std::size_t index) {
  const auto saved = reader.values().under(text::concat("schedules/", index));
  const auto step = saved.get<std::int64_t>("step");
  PythonDict state;
  state.put("last_epoch", step);
  if (saved.contains("watch/best")) {
    state.put("best", saved.get<double>("watch/best"));
    state.put("num_bad_epochs", saved.get<std::int64_t>("watch/bad"));
    state.put("cooldown_counter", saved.get<std::int64_t>("watch/cooldown_left"));
    state.put("_last_lr", list_of(numbered_values(saved, "rates")));
  } else {
    const auto base = numbered_values(saved, "base_rates");
    const auto rates = rates_of(reader.values(), index);
    state.put("base_lrs", list_of(base));
    state.put("_step_count", step + 1);
    state.put("_last_lr", list_of(rates.size() == base.size() ? rates : base));
    state.put("lr_lambdas",
              PickleValue{.content = PickleValue::List(base.size())});  // None: the constructor's functions
  }
  return {.name = numbered_file("scheduler", index, ".bin"), .value = std::move(state).value()};
}

PythonFile scaler_for_python(const Reader& reader) {
  const auto saved = reader.values().under("scaler");
  PythonDict state;
  for (const auto* name : {"scale", "growth_factor", "backoff_factor"}) state.put(name, saved.get<double>(name));
  state.put("growth_interval", saved.get<std::int64_t>("growth_interval"));
  state.put("_growth_tracker", saved.get<std::int64_t>("growth_tracker"));
  return {.name = "scaler.pt", .value = std::move(state).value()};
}

PythonFile object_for_python(const Reader& reader, const std::string& object, std::size_t index) {
  const auto prefix = "objects/" + object;
  PythonDict state;
  for (const auto& [name, spec] : reader.tensors()) {
    if (name.starts_with(prefix + "/")) state.put_at(name.substr(prefix.size() + 1), tensor_value(name, spec));
  }
  const auto numbers = reader.own(0, "objects").under(object);
  for (const auto& [name, value] : numbers.values()) state.put_at(name, python_value(value));
  return {.name = text::concat("custom_checkpoint_", index, ".pkl"), .value = std::move(state).value()};
}

PythonFile random_for_python(const Reader& reader, int rank) {
  PythonFile file{.name = text::concat("random_states_", rank, ".pkl"), .value = {}};
  const auto saved = reader.own(rank, "random");
  const auto seed = reader.values().contains("run/seed") ? reader.values().get<std::uint64_t>("run/seed") : 0;
  const auto key = core::mix(core::mix(seed, static_cast<std::uint64_t>(reader.manifest().updates)),
                             static_cast<std::uint64_t>(rank));
  PythonDict state;
  state.put("step", std::int64_t{0});  // micro-steps since the last update
  state.put("random_state", python_random(core::mix(key, 1)));
  state.put("numpy_random_seed", numpy_random(core::mix(key, 2)));
  for (const auto& [name, value] : saved.values()) {
    const auto* tensor = std::get_if<at::Tensor>(&value);
    if (tensor == nullptr) continue;
    file.tensors[name] = *tensor;
    auto stored = tensor_value(name, formats::spec_of(*tensor));
    if (name == "cpu") state.put("torch_manual_seed", std::move(stored));
    if (name == "device") state.put("torch_cuda_manual_seed", PickleValue{.content = PickleValue::List{stored}});
  }
  file.value = std::move(state).value();
  return file;
}

std::vector<std::string> objects_in(const Reader& reader) {
  std::set<std::string> names;
  const auto add = [&](const std::string& path) { names.insert(path.substr(0, path.find('/'))); };
  for (const auto& [name, spec] : reader.tensors()) {
    if (name.starts_with("objects/")) add(name.substr(std::string("objects/").size()));
  }
  const auto own = reader.own(0, "objects");
  for (const auto& [name, value] : own.values()) add(name);
  return {names.begin(), names.end()};
}

std::vector<std::string> left_out_for_python(const Reader& reader) {
  std::vector<std::string> left;
  const auto& values = reader.values();
  for (std::size_t i = 0; values.contains(text::concat("loaders/", i, "/position")); ++i) {
    const auto at = text::concat("loaders/", i, "/");
    left.push_back(text::concat("the position of loader ", i, ": sample ", values.get<std::int64_t>(at + "position"),
                                " of epoch ", values.get<std::int64_t>(at + "epoch"),
                                "; in Python, use skip_first_batches"));
  }
  for (const auto& [name, spec] : reader.tensors()) {
    if (!name.starts_with("optimizers/") || !name.ends_with("/master")) continue;
    left.push_back("the fp32 copies of 16-bit parameters: Python's optimizers have none");
    break;
  }
  if (reader.world_size() > 1 && !reader.own(0, "objects").empty())
    left.emplace_back("numbers and texts of registered objects on ranks above 0: Python saves those of one process");
  left.emplace_back("random numbers of Python and NumPy: the folder has fresh ones, which depend on the run's seed");
  return left;
}

}  // namespace hortator::accelerator
