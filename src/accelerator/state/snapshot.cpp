#include "accelerator/state/snapshot.hpp"

#include <array>

#include "accelerator/state/load_policy.hpp"
#include "accelerator/state/random_state.hpp"
#include "accelerator/state/sharded_state.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text/text.hpp"
#include "step/optimizer/optimizer_state.hpp"

namespace hortator::accelerator {
namespace {

std::string numbered(const char* room, std::size_t index) { return text::concat(room, "/", index); }

StateDict tensors_of(const torch::nn::Module& module) {
  StateDict tensors;
  for (const auto& item : module.named_parameters()) tensors.put(item.key(), item.value());
  for (const auto& item : module.named_buffers()) tensors.put(item.key(), item.value());
  return tensors;
}

StateDict model_tensors(const Training& training) {
  StateDict all;
  for (std::size_t i = 0; i < training.models.size(); ++i) {
    all.put_all(numbered("models", i), tensors_of(training.models[i]->module()));
  }
  return all;
}

/// What the checkpoint says under a prefix, its tensors read.
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

std::vector<std::string> other_counts(const Training& training, const checkpoint::Reader& reader) {
  const std::array<std::pair<const char*, std::size_t>, 4> prepared = {{{"models", training.models.size()},
                                                                        {"optimizers", training.optimizers.size()},
                                                                        {"schedules", training.schedules.size()},
                                                                        {"loaders", training.loaders.size()}}};
  std::vector<std::string> lines;
  for (const auto& [what, count] : prepared) {
    const auto saved = count_of(reader, what);
    if (saved != count) lines.push_back(text::concat("it holds ", saved, " ", what, ", prepared are ", count));
  }
  return lines;
}

// What is told of the last step a step late is told in the run that goes on, too.
StateDict scaler_state(const Training& training) {
  auto state = training.scaler->state();
  for (std::size_t i = 0; training.scaler->is_late() && i < training.optimizers.size(); ++i)
    state.put(numbered("skipped", i), training.optimizers[i]->step_was_skipped());
  return state;
}

// Tensors of registered objects are one for all ranks, as the model's; numbers and texts are each rank's own.
void put_object(checkpoint::Snapshot& snapshot, const RegisteredObject& object) {
  StateDict state;
  object.save(state);
  for (const auto& [name, value] : state.values()) {
    const auto path = "objects/" + object.name + "/" + name;
    std::visit(
        [&](const auto& held) {
          using Held = std::decay_t<decltype(held)>;
          (std::is_same_v<Held, at::Tensor> ? snapshot.common : snapshot.own).put(path, held);
        },
        value);
  }
}

StateDict read_object(const checkpoint::Reader& reader, const StateDict& own, const std::string& name) {
  auto state = read_under(reader, "objects/" + name);
  const auto numbers = own.under("objects/" + name);
  for (const auto& [path, value] : numbers.values()) {
    std::visit([&](const auto& held) { state.put(path, held); }, value);
  }
  return state;
}

checkpoint::TensorSpecs expected_tensors(const Training& training, const checkpoint::Reader& reader) {
  checkpoint::TensorSpecs expected;
  const auto tensors = model_tensors(training);
  for (const auto& [name, value] : tensors.values())
    expected.emplace(name, formats::spec_of(std::get<at::Tensor>(value)));
  // Moments come and go with the optimizer's first step: their shapes are checked against their parameters.
  for (const auto& [name, spec] : reader.tensors()) {
    if (!name.starts_with("models/")) expected.emplace(name, spec);
  }
  return expected;
}

/// A schedule of another kind keeps other numbers.
void require_numbers_of(const ScheduleBase& schedule, const StateDict& saved) {
  const auto expected = schedule.state();
  for (const auto& [name, value] : expected.values()) {
    if (!saved.contains(name)) throw Error({.what = text::concat("a schedule of another kind: it has no ", name)});
  }
}

/// What is wrong with optimizers and schedules, of which there are as many.
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
  const auto names = training.stepped_names();
  for (std::size_t i = 0; i < training.optimizers.size(); ++i) {
    attempt(numbered("optimizers", i),
            [&](const auto& prefix) { check_moments(reader, prefix, *training.optimizers[i], names); });
  }
  for (std::size_t i = 0; i < training.schedules.size(); ++i) {
    attempt(numbered("schedules", i),
            [&](const auto& prefix) { require_numbers_of(training.schedules[i], read_under(reader, prefix)); });
  }
  return lines;
}

/// All that does not fit, in one error.
void check_fits(const Training& training, const checkpoint::Reader& reader, const StateDict& own, bool strict) {
  auto lines = other_counts(training, reader);
  for (auto& line : checkpoint::mismatches(expected_tensors(training, reader), reader.tensors()))
    lines.push_back(std::move(line));
  for (const auto& object : training.objects) {
    if (read_object(reader, own, object.name).empty())
      lines.push_back("it holds nothing for the registered object '" + object.name + "'");
  }
  // Without strictness each of them is tried when its turn comes, and told of then.
  if (lines.empty() && strict) lines = misfits(training, reader);
  if (lines.empty()) return;
  throw Error(
      {.what = text::concat("the checkpoint ", reader.folder().string(), " does not fit: ", text::join(lines, "; ")),
       .why = "a resumed run must go on with everything that was saved, and nothing was changed",
       .hint = "prepare the same models, optimizers and objects in the same order as when it was saved, or "
               "load what fits with {.strict = false}"});
}

/// Before anything else is changed, since only they know whether their data set is the one that it was. One that is not
/// leaves all of them where they stood.
void restore_loaders(Training& training, const checkpoint::Reader& reader, const LoadPolicy& policy) {
  std::vector<StateDict> before;
  try {
    for (std::size_t i = 0; i < training.loaders.size(); ++i) {
      const auto saved = read_under(reader, numbered("loaders", i));
      before.push_back(training.loaders[i].state());
      policy.attempt([&] { training.loaders[i].load(saved); });
    }
  } catch (...) {
    for (std::size_t i = 0; i + 1 < before.size(); ++i) training.loaders[i].load(before[i]);
    throw;
  }
}

/// For a rank that no rank of the run that saved was: by what that run began with, how far it was, and the rank.
void begin_random_numbers(const Training& training, const checkpoint::Reader& reader, int rank) {
  auto key = reader.values().get<std::uint64_t>("run/seed");
  for (const auto number : {reader.manifest().step, reader.manifest().updates, std::int64_t{rank}})
    key = core::mix(key, static_cast<std::uint64_t>(number));
  seed_random_state(training.device(), key);
}

void go_on_in_other_world(const Training& training, const checkpoint::Reader& reader, int rank, int world) {
  const bool has_seed = reader.values().contains("run/seed");
  if (has_seed) begin_random_numbers(training, reader, rank);
  if (rank != 0) return;
  log::warn("the checkpoint was written by ", text::count(reader.world_size(), "rank"), " and is loaded by ", world,
            ": random numbers (dropout, ...) go on with others, ",
            has_seed ? "the same each time it is loaded by as many" : "which it says nothing of",
            "; everything else where it stopped");
}

}  // namespace

void restore_scaler(const Training& training, const StateDict& saved, int rank) {
  if (training.scaler && !saved.empty()) {
    training.scaler->load(saved);
    for (std::size_t i = 0; i < training.optimizers.size(); ++i) {
      const auto skipped = numbered("skipped", i);
      training.optimizers[i]->forget_step_ahead(saved.contains(skipped) && saved.get<bool>(skipped));
    }
    return;
  }
  if (rank != 0) return;
  if (training.scaler) {
    log::warn("the checkpoint holds no scale of the loss: it begins at ", training.scaler->now().scale);
  } else if (!saved.empty()) {
    log::warn("the checkpoint's scale of the loss (fp16) is not used: this run's precision is ",
              to_string(training.precision));
  }
}

checkpoint::Snapshot take_snapshot(const Training& training, std::int64_t next_iteration) {
  checkpoint::Snapshot snapshot;
  auto& common = snapshot.common;
  training.settle_steps();
  for (std::size_t i = 0; i < training.models.size(); ++i)
    put_model(snapshot, numbered("models", i), training, training.models[i]->module());
  const auto names = training.stepped_names();
  for (std::size_t i = 0; i < training.optimizers.size(); ++i) {
    put_optimizer(snapshot, numbered("optimizers", i), training, *training.optimizers[i], names);
  }
  for (std::size_t i = 0; i < training.schedules.size(); ++i)
    common.put_all(numbered("schedules", i), training.schedules[i].state());
  for (std::size_t i = 0; i < training.loaders.size(); ++i)
    common.put_all(numbered("loaders", i), training.loaders[i].state());
  if (training.scaler) common.put_all("scaler", scaler_state(training));
  for (const auto& object : training.objects) put_object(snapshot, object);
  common.put("run/models", training.models.size());
  common.put("run/optimizers", training.optimizers.size());
  common.put("run/schedules", training.schedules.size());
  common.put("run/loaders", training.loaders.size());
  common.put("run/iteration", next_iteration);
  common.put("run/seed", training.seed());
  // Ranks may log or not: rank 0's is what counts.
  snapshot.own.put("log/last_step", training.trackers.last_step());
  snapshot.own.put_all("random", random_state(training.device()));
  return snapshot;
}

void restore_snapshot(Training& training, const checkpoint::Reader& reader, int rank, int world, bool strict) {
  training.settle_steps();
  const bool same_world = reader.world_size() == world;
  const auto own = reader.own(same_world ? rank : 0);
  const LoadPolicy policy(strict, [rank](const std::string& problem) {
    if (rank == 0) log::warn("not loaded, as strict = false allows: ", problem);
  });
  policy.attempt([&] { check_fits(training, reader, own, strict); });
  restore_loaders(training, reader, policy);
  const auto names = training.stepped_names();
  for (std::size_t i = 0; i < training.optimizers.size(); ++i) {
    policy.attempt([&] {
      const auto& optimizer = *training.optimizers[i];
      const auto prefix = numbered("optimizers", i);
      step::load_optimizer(
          optimizer.optimizer(), names,
          optimizer.shards() != nullptr ? read_slices(reader, prefix, optimizer, names) : read_under(reader, prefix));
    });
  }
  const at::NoGradGuard no_grad;
  const auto tensors = model_tensors(training);
  for (const auto& [name, value] : tensors.values()) {
    const auto& tensor = std::get<at::Tensor>(value);
    const auto found = reader.tensors().find(name);
    const bool fits = found != reader.tensors().end() && found->second == formats::spec_of(tensor);
    if (strict || fits) read_parameter(reader, name, training, tensor);
  }
  for (std::size_t i = 0; i < training.optimizers.size(); ++i)
    restore_masters(reader, numbered("optimizers", i), *training.optimizers[i], names);
  for (std::size_t i = 0; i < training.schedules.size(); ++i)
    policy.attempt([&] { training.schedules[i].load(read_under(reader, numbered("schedules", i))); });
  restore_scaler(training, reader.values().under("scaler"), rank);
  for (const auto& object : training.objects)
    policy.attempt([&] { object.load(read_object(reader, own, object.name)); });
  training.project.set_iteration(reader.values().get<std::int64_t>("run/iteration"));
  training.updates_before += reader.manifest().updates - training.updates();
  if (own.contains("log/last_step")) training.trackers.resume_after(own.get<std::int64_t>("log/last_step"));
  if (same_world) {
    restore_random_state(training.device(), own.under("random"));
  } else {
    go_on_in_other_world(training, reader, rank, world);
  }
}

}  // namespace hortator::accelerator
