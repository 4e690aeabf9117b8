#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "accelerator/channels/channels.hpp"
#include "accelerator/channels/random_state.hpp"
#include "accelerator/prepared/prepared.hpp"
#include "accelerator/state/divided_state.hpp"
#include "accelerator/state/load_policy.hpp"
#include "accelerator/state/sharded_state.hpp"
#include "accelerator/state/snapshot.hpp"
#include "accelerator/state/snapshot_paths.hpp"
#include "accelerator/state/staged_state.hpp"
#include "accelerator/training/run_output.hpp"
#include "accelerator/training/step_control.hpp"
#include "accelerator/training/training.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "step/gradients/protection.hpp"
#include "step/moments/optimizer_state.hpp"
#include "step/precision/grad_scaler.hpp"

namespace hortator::accelerator {
namespace {

StateDict tensors_of(const torch::nn::Module& module, bool only_trainable) {
  StateDict tensors;
  for (const auto& item : module.named_parameters()) {
    if (parallel::is_of_other_stage(item.value())) continue;
    if (!only_trainable || item.value().requires_grad()) tensors.put(item.key(), item.value());
  }
  for (const auto& item : module.named_buffers()) tensors.put(item.key(), item.value());
  return tensors;
}

StateDict model_tensors(const Training& training, const ModelSelection& selection) {
  StateDict all;
  for (std::size_t i = 0; i < training.prepared.models().size(); ++i) {
    if (!selection.has_model(i)) continue;
    all.put_all(numbered("models", i), tensors_of(training.prepared.models()[i]->module(), selection.only_trainable));
  }
  return all;
}

/// What the save has selected, without the models that this load leaves out.
ModelSelection selection_of(const checkpoint::Reader& reader, const std::set<std::size_t>& left_out) {
  ModelSelection selection{.only_trainable = reader.values().contains("run/only_trainable"), .left_out = left_out};
  const auto saved = reader.values().under("run/left_out");
  for (const auto& [model, mark] : saved.values()) selection.left_out.insert(std::stoul(model));
  return selection;
}

/// Reads everything that the checkpoint has under a prefix.
StateDict read_under(const checkpoint::Reader& reader, const std::string& prefix) {
  StateDict part = reader.values().under(prefix);
  for (const auto& [name, spec] : reader.tensors()) {
    if (name.starts_with(prefix + "/")) part.put(name.substr(prefix.size() + 1), reader.read(name));
  }
  return part;
}

std::size_t count_of(const checkpoint::Reader& reader, const char* what) {
  return reader.values().contains(text::concat("run/", what))
             ? reader.values().get<std::size_t>(text::concat("run/", what))
             : 0;
}

/// The parts of a folder of the checkpoint that no object of the program has saved, by the beginning of their names.
std::set<std::string> unclaimed(const checkpoint::Reader& reader, const StateDict& own, const std::string& folder,
                                const std::vector<std::string>& claimed) {
  std::set<std::string> parts;
  const auto look_at = [&](const std::string& path) {
    if (!path.starts_with(folder + "/")) return;
    const auto name = path.substr(folder.size() + 1);
    const auto claims = [&](const std::string& one) { return name.starts_with(one + "/"); };
    if (std::ranges::none_of(claimed, claims)) parts.insert(name.substr(0, name.find('/')));
  };
  for (const auto& [path, spec] : reader.tensors()) look_at(path);
  for (const auto& [path, value] : reader.values().values()) look_at(path);
  for (const auto& [path, value] : own.values()) look_at(path);
  return parts;
}

/// A line for each registered object and each average that this program does not have.
std::vector<std::string> missing_here(const Training& training, const checkpoint::Reader& reader,
                                      const StateDict& own) {
  std::vector<std::string> objects, averages, lines;
  for (const auto& object : training.prepared.objects()) objects.push_back(object.name);
  for (const auto& part : training.prepared.parts()) {
    if (!part.averages.empty()) averages.push_back(part.averages);
  }
  for (const auto& name : unclaimed(reader, own, "objects", objects))
    lines.push_back(text::concat("it holds an object '", name, "', which is not registered"));
  for (const auto& name : unclaimed(reader, own, "averages", averages))
    lines.push_back(text::concat("it holds averaged weights '", name, "', which no Ema has"));
  return lines;
}

std::vector<std::string> other_counts(const Training& training, const checkpoint::Reader& reader) {
  const std::array<std::pair<const char*, std::size_t>, 4> prepared = {
      {{"models", training.prepared.models().size()},
       {"optimizers", training.prepared.optimizers().size()},
       {"schedules", training.prepared.schedules().size()},
       {"loaders", training.prepared.loaders().size()}}};
  std::vector<std::string> lines;
  for (const auto& [what, count] : prepared) {
    const auto saved = count_of(reader, what);
    if (saved != count) lines.push_back(text::concat("it holds ", saved, " ", what, ", prepared are ", count));
  }
  return lines;
}

StateDict read_object(const checkpoint::Reader& reader, const StateDict& own, const std::string& name) {
  auto state = read_under(reader, "objects/" + name);
  const auto numbers = own.under("objects/" + name);
  for (const auto& [path, value] : numbers.values()) {
    std::visit([&](const auto& held) { state.put(path, held); }, value);
  }
  return state;
}

/// Whether a tensor belongs to a model that is not loaded.
bool is_left_out(const std::string& name, const ModelSelection& selection) {
  return std::ranges::any_of(selection.left_out,
                             [&](std::size_t model) { return name.starts_with(numbered("models", model) + "/"); });
}

checkpoint::TensorSpecs expected_tensors(const Training& training, const checkpoint::Reader& reader,
                                         const ModelSelection& selection) {
  checkpoint::TensorSpecs expected;
  const auto tensors = model_tensors(training, selection);
  for (const auto& [name, value] : tensors.values())
    expected.emplace(name, whole_spec(training, std::get<at::Tensor>(value)));
  // Moments exist only after the optimizer's first step: their shapes are checked against their parameters.
  for (const auto& [name, spec] : reader.tensors()) {
    if (!name.starts_with("models/") || is_left_out(name, selection) || is_of_other_stage(training, name))
      expected.emplace(name, spec);
  }
  return expected;
}

/// Throws if the saved schedule is of another type, which has other numbers.
void require_numbers_of(const ScheduleBase& schedule, const StateDict& saved) {
  const auto expected = schedule.state();
  for (const auto& [name, value] : expected.values()) {
    if (!saved.contains(name)) throw Error({.what = text::concat("a schedule of another kind: it has no ", name)});
  }
}

/// Describes what does not fit in optimizers and schedules; their counts must match.
std::vector<std::string> misfits(const Training& training, const checkpoint::Reader& reader) {
  std::vector<std::string> lines;
  const auto attempt = [&](const std::string& prefix, const auto& check) {
    try {
      check(prefix);
    } catch (const formats::FileError&) {
      throw;
    } catch (const Error& error) {
      lines.push_back(text::concat(prefix, ": ", error.what()));
    }
  };
  const auto names = training.prepared.stepped_names();
  for (std::size_t i = 0; i < training.prepared.optimizers().size(); ++i) {
    attempt(numbered("optimizers", i), [&](const auto& prefix) {
      check_moments(reader, prefix, training, *training.prepared.optimizers()[i], names);
    });
  }
  for (std::size_t i = 0; i < training.prepared.schedules().size(); ++i) {
    attempt(numbered("schedules", i), [&](const auto& prefix) {
      require_numbers_of(training.prepared.schedules()[i], read_under(reader, prefix));
    });
  }
  return lines;
}

/// Throws one error with everything that does not fit.
void check_fits(const Training& training, const checkpoint::Reader& reader, const StateDict& own, bool strict,
                const ModelSelection& selection) {
  auto lines = other_counts(training, reader);
  for (auto& line : checkpoint::mismatches(expected_tensors(training, reader, selection), reader.tensors()))
    lines.push_back(std::move(line));
  for (const auto& object : training.prepared.objects()) {
    if (read_object(reader, own, object.name).empty())
      lines.push_back("it holds nothing for the registered object '" + object.name + "'");
  }
  for (const auto& part : training.prepared.parts()) {
    for (auto& line : part.misfits(reader)) lines.push_back(std::move(line));
  }
  for (auto& line : missing_here(training, reader, own)) lines.push_back(std::move(line));
  // If not strict, each of them is tried later and reported then.
  if (lines.empty() && strict) lines = misfits(training, reader);
  if (lines.empty()) return;
  throw Error(
      {.what = text::concat("The checkpoint ", reader.folder().string(), " does not fit: ", text::join(lines, "; ")),
       .why = "a resumed run must continue with everything that was saved; nothing was changed",
       .hint = "prepare the same models, optimizers and objects in the same order as when it was saved, or "
               "load what fits with {.strict = false}"});
}

/// Restores loaders before anything else is changed, since only they know whether their data set is still the same. If
/// one throws, all keep their positions.
void restore_loaders(Training& training, const checkpoint::Reader& reader, const LoadPolicy& policy) {
  std::vector<StateDict> before;
  try {
    for (std::size_t i = 0; i < training.prepared.loaders().size(); ++i) {
      const auto saved = read_under(reader, numbered("loaders", i));
      before.push_back(training.prepared.loaders()[i].state());
      policy.attempt([&] { training.prepared.loaders()[i].load(saved); });
    }
  } catch (...) {
    for (std::size_t i = 0; i + 1 < before.size(); ++i) training.prepared.loaders()[i].load(before[i]);
    throw;
  }
}

/// Seeds a rank that has no saved random numbers, from the saved run's seed, its progress and the rank's part of
/// batches.
void seed_for_other_world(const Training& training, const checkpoint::Reader& reader) {
  auto key = reader.values().get<std::uint64_t>("run/seed");
  for (const auto number : {reader.manifest().step, reader.manifest().updates, std::int64_t{training.data().index()}})
    key = core::mix(key, static_cast<std::uint64_t>(number));
  seed_random_state(training.device(), key);
}

void resume_in_other_world(const Training& training, const checkpoint::Reader& reader, int rank, int world) {
  const bool has_seed = reader.values().contains("run/seed");
  if (has_seed) seed_for_other_world(training, reader);
  if (rank != 0) return;
  log::warn("the checkpoint was written by ", text::count(reader.world_size(), "rank"), " and is loaded by ", world,
            reader.world_size() == world ? " along other axes" : "",
            ": random numbers (dropout, ...) are not resumed, ",
            has_seed ? "but are the same each time it is loaded by that many" : "since it holds no seed for them",
            "; everything else resumes where it stopped");
}

// A run that was not protected has saved no mean loss: this one begins its own.
void restore_protection(const Training& training, const StateDict& saved) {
  if (auto* protection = training.control.protection(); protection != nullptr && !saved.empty())
    protection->losses().load(saved);
}

}  // namespace

bool has_same_ranks(const Training& training, const checkpoint::Reader& reader, int world) {
  if (reader.world_size() != world) return false;
  const auto& saved = reader.manifest().mesh;
  const auto& shape = training.channels.mesh().shape();
  return std::ranges::all_of(parallel::all_axes, [&](parallel::Axis axis) {
    if (axis == parallel::Axis::replicate || axis == parallel::Axis::shard) return true;
    const auto found = saved.find(std::string(name_of(axis)));
    return shape.size(axis) == (found == saved.end() ? 1 : found->second);
  });
}

void restore_scaler(const Training& training, const StateDict& saved, int rank) {
  if (training.control.scaler() && !saved.empty()) {
    training.control.scaler()->load(saved);
    for (std::size_t i = 0; i < training.prepared.optimizers().size(); ++i) {
      const auto skipped = numbered("skipped", i);
      training.prepared.optimizers()[i]->forget_step_ahead(saved.contains(skipped) && saved.get<bool>(skipped));
    }
    return;
  }
  if (rank != 0) return;
  if (training.control.scaler()) {
    log::warn("the checkpoint holds no scale of the loss: it begins at ", training.control.scaler()->now().scale);
  } else if (!saved.empty()) {
    log::warn("the checkpoint's scale of the loss (fp16) is not used: this run's precision is ",
              to_string(training.control.precision()));
  }
}

void restore_snapshot(Training& training, const checkpoint::Reader& reader, int rank, int world, bool strict,
                      const std::set<std::size_t>& left_out) {
  const auto selection = selection_of(reader, left_out);
  training.control.settle_steps();
  StateDict own;  // without further parts, which may be large and read their own
  for (const auto* folder : {"objects", "random", "log", "protection"})
    own.put_all(folder, reader.own(has_same_ranks(training, reader, world) ? rank : 0, folder));
  const LoadPolicy policy(strict, [rank](const std::string& problem) {
    if (rank == 0) log::warn("not loaded, as strict = false allows: ", problem);
  });
  policy.attempt([&] { check_fits(training, reader, own, strict, selection); });
  restore_loaders(training, reader, policy);
  const auto names = training.prepared.stepped_names();
  for (std::size_t i = 0; i < training.prepared.optimizers().size(); ++i) {
    policy.attempt([&] {
      auto& optimizer = *training.prepared.optimizers()[i];
      optimizer.load(names, read_slices(reader, numbered("optimizers", i), training, optimizer, names));
    });
  }
  const at::NoGradGuard no_grad;
  const auto tensors = model_tensors(training, selection);
  for (const auto& [name, value] : tensors.values()) {
    const auto& tensor = std::get<at::Tensor>(value);
    const auto found = reader.tensors().find(name);
    const bool fits = found != reader.tensors().end() && found->second == whole_spec(training, tensor);
    if (strict || fits) read_parameter(reader, name, training, tensor);
  }
  for (std::size_t i = 0; i < training.prepared.optimizers().size(); ++i)
    restore_masters(reader, numbered("optimizers", i), training, *training.prepared.optimizers()[i], names);
  for (std::size_t i = 0; i < training.prepared.schedules().size(); ++i)
    policy.attempt([&] { training.prepared.schedules()[i].load(read_under(reader, numbered("schedules", i))); });
  restore_scaler(training, reader.values().under("scaler"), rank);
  restore_protection(training, own.under("protection"));
  for (const auto& object : training.prepared.objects())
    policy.attempt([&] { object.load(read_object(reader, own, object.name)); });
  for (const auto& part : training.prepared.parts()) policy.attempt([&] { part.load(reader); });
  if (own.contains("log/micro_steps"))
    training.control.accumulation().resume_at({.taken = own.get<std::int64_t>("log/micro_steps")});
  training.output.project().set_iteration(reader.values().get<std::int64_t>("run/iteration"));
  training.output.resume_after(reader.manifest().updates);
  if (own.contains("log/last_step")) training.output.trackers().resume_after(own.get<std::int64_t>("log/last_step"));
  if (has_same_ranks(training, reader, world)) {
    restore_random_state(training.device(), own.under("random"));
  } else {
    resume_in_other_world(training, reader, rank, world);
  }
}

}  // namespace hortator::accelerator
