#include <fstream>
#include <hortator/error.hpp>
#include <iostream>
#include <memory>

#include "core/text/text.hpp"
#include "core/whole_file.hpp"
#include "runtime/identity/flight_record.hpp"
#include "tools/trace/flight_trace.hpp"
#include "tools/trace/kineto_file.hpp"
#include "tools/trace/merged_trace.hpp"
#include "tools/verbs.hpp"
#include "tools/written_file.hpp"

namespace hortator::tools {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;
using OneEvent = nlohmann::ordered_json;

Options trace_options() {
  Options options;
  options.named.add_options()("output,o", po::value<std::string>()->value_name("FILE"),
                              "the trace of all ranks (default: all_ranks.json beside the ranks' traces)")(
      "cycle", po::value<int>()->default_value(0)->value_name("N"),
      "of a schedule that records several times: 0 is the first recording")(
      "for-hta", po::value<std::string>()->value_name("DIR"),
      "also write a trace of each rank in the common clock, for HolisticTraceAnalysis")(
      "flight", "show the last collectives before a failure or stall, from status/flight.jsonl")("help,h",
                                                                                                 "print this help");
  return options;
}

int print_trace_help() {
  std::cout
      << "usage: hortator trace FOLDER [options]\n\n"
         "Joins the traces that Accelerator::profile() writes on each rank into one, for https://ui.perfetto.dev or\n"
         "chrome://tracing, and prints where the time of each rank goes. The clocks of hosts are aligned by the\n"
         "collectives of their ranks. Each collective under way has its bytes, its group's ranks, and the rank that\n"
         "entered last. FOLDER: of the traces, or of the run.\n\n"
         "  hortator trace runs/train\n"
         "  hortator trace trace -o trace/all.json --for-hta trace/hta\n"
         "  hortator trace runs/train --flight -o last.json      (after a failure or stall)\n\n"
         "exit code: 0; 1 traces are missing or cannot be read; 2 wrong usage\n\n"
      << trace_options().named;
  return 0;
}

/// A file of events, written one after the other.
class EventFile {
 public:
  explicit EventFile(const fs::path& file) : name_(file.string()), out_(file) { out_ << "{\"traceEvents\": ["; }

  void add(const OneEvent& event) {
    out_ << (is_first_ ? "\n" : ",\n") << event.dump(-1, ' ', false, OneEvent::error_handler_t::replace);
    is_first_ = false;
  }
  /// Throws Error if the file could not be written. `facts`: further members, with blanks after their colons, because
  /// HolisticTraceAnalysis looks for `"rank": 3`.
  void finish(const OneEvent& facts = OneEvent::object()) {
    out_ << "\n]";
    for (const auto& [name, value] : facts.items()) out_ << ",\n" << OneEvent(name).dump() << ": " << value.dump(1);
    out_ << "\n}\n";
    out_.close();
    if (!out_) throw Error({.what = "Cannot write " + text::quote(name_), .hint = "name a file that you may write"});
  }

 private:
  std::string name_;
  std::ofstream out_;
  bool is_first_ = true;
};

/// What the first reading of a rank's file finds.
struct RankTrace {
  fs::path file = {};
  TraceHead head = {};
  std::vector<TracedCollective> collectives = {};
  OperatorReader operators = {};
};

RankTrace read_rank(const fs::path& file, int rank) {
  RankTrace trace{.file = file};
  CollectiveReader collectives;
  trace.head = read_trace(file, rank, [&](const OneEvent& event) {
    collectives.take(event);
    trace.operators.take(event);
  });
  trace.collectives = collectives.collectives();
  return trace;
}

void move_collectives(std::vector<TracedCollective>& collectives, double shift) {
  for (auto& each : collectives) {
    each.begin += shift;
    each.end += shift;
    if (each.wait_end < 0) continue;
    each.wait_begin += shift;
    each.wait_end += shift;
  }
}

ClockAlignment alignment_of(const std::vector<RankTrace>& traces) {
  std::vector<ClockOfRank> clocks;
  for (const auto& trace : traces) {
    // Each file counts from a time of its own.
    const double shift = trace.head.base - traces.front().head.base;
    ClockOfRank clock{.host = trace.head.host, .meetings = trace.head.barriers};
    const auto meetings = meetings_of(trace.collectives);
    clock.meetings.insert(clock.meetings.end(), meetings.begin(), meetings.end());
    for (auto& meeting : clock.meetings) {
      meeting.begin += shift;
      meeting.end += shift;
    }
    clocks.push_back(std::move(clock));
  }
  auto alignment = align_clocks(clocks);
  for (std::size_t rank = 0; rank < traces.size(); ++rank)
    alignment.offsets[rank] += traces[rank].head.base - traces.front().head.base;
  return alignment;
}

/// The common clock counts from where rank 0's file does.
OneEvent clock_facts(const RankTrace& first) {
  return {{"displayTimeUnit", "ms"}, {"baseTimeNanoseconds", static_cast<std::int64_t>(first.head.base * 1000)}};
}

void write_merged(const fs::path& file, const std::vector<RankTrace>& traces, const ClockAlignment& alignment,
                  const JoinedCollectives& joined) {
  EventFile out(file);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const int rank = static_cast<int>(i);
    RankEvents events(rank, traces[i].head.host, alignment.offsets[i]);
    read_trace(traces[i].file, rank, [&](OneEvent& event) {
      events.move(event);
      out.add(event);
    });
    for (const auto& event : under_way_events(rank, traces[i].collectives, joined)) out.add(event);
  }
  out.finish(clock_facts(traces.front()));
}

void write_for_hta(const fs::path& folder, const std::vector<RankTrace>& traces, const ClockAlignment& alignment) {
  fs::create_directories(folder);
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const int rank = static_cast<int>(i);
    const auto& trace = traces[i];
    EventFile out(folder / text::concat("rank_", rank, ".json"));
    read_trace(trace.file, rank, [&](OneEvent& event) {
      if (const auto time = event.find("ts"); time != event.end() && time->is_number())
        *time = time->get<double>() + alignment.offsets[i];
      out.add(event);
    });
    if (!trace.operators.has_kernels()) {
      auto operators = trace.operators.operators();
      for (auto& each : operators) {
        each.time.begin += alignment.offsets[i];
        each.time.end += alignment.offsets[i];
      }
      for (const auto& event : device_events(rank, trace.collectives, operators)) out.add(event);
    }
    auto facts = clock_facts(traces.front());
    facts["distributedInfo"] = {{"backend", "nccl"}, {"rank", rank}, {"world_size", static_cast<int>(traces.size())}};
    out.finish(facts);
  }
}

int join_traces(const fs::path& folder, const po::variables_map& values) {
  const int cycle = values["cycle"].as<int>();
  if (cycle < 0) throw UsageError({.what = text::concat("--cycle: expected a whole number from 0, got ", cycle)});
  std::vector<RankTrace> traces;
  for (const auto& file : trace_files(folder, cycle))
    traces.push_back(read_rank(file, static_cast<int>(traces.size())));
  const auto alignment = alignment_of(traces);
  std::vector<std::vector<TracedCollective>> of_ranks;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    move_collectives(traces[rank].collectives, alignment.offsets[rank]);
    of_ranks.push_back(traces[rank].collectives);
  }
  const auto joined = join(of_ranks);
  std::vector<RankTimes> times;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    const auto& trace = traces[i];
    times.push_back(times_of(trace.collectives, trace.operators, joined, static_cast<int>(i), alignment.offsets[i]));
    times.back().host = trace.head.host;
  }
  const auto output = values.contains("output") ? fs::path(values["output"].as<std::string>())
                                                : traces.front().file.parent_path() / "all_ranks.json";
  write_merged(output, traces, alignment, joined);
  std::cout << times_table(times) << "\nclocks: collectives of one sequence number "
            << (alignment.contradiction > 0 ? text::print("miss each other by at most %.1f us", alignment.contradiction)
                                            : "overlap");
  if (alignment.uncertainty > 0)
    std::cout << text::print("; between hosts known to %.1f us", alignment.uncertainty / 2);
  std::cout << "\ntrace of all ranks: " << output.string() << '\n';
  if (values.contains("for-hta")) {
    const auto hta = values["for-hta"].as<std::string>();
    write_for_hta(hta, traces, alignment);
    std::cout << "traces for HolisticTraceAnalysis: " << hta << '\n';
  }
  return 0;
}

int show_flight(const fs::path& folder, const po::variables_map& values) {
  constexpr std::uint64_t max_bytes = std::uint64_t{1} << 31;
  const auto file = folder / "status" / runtime::flight_file;
  const auto content = core::read_at_most(file, max_bytes);
  if (!content) {
    throw UsageError({.what = text::concat("No record of the last collectives in ", text::quote(folder.string())),
                      .why = "ranks write it when they fail, crash or stall",
                      .hint = "name the folder of a run that failed"});
  }
  const auto flight = runtime::parse_flight(*content);
  std::cout << flight_table(flight);
  if (values.contains("output")) {
    const auto output = values["output"].as<std::string>();
    EventFile out(output);
    for (const auto& event : flight_events(flight)) out.add(event);
    out.finish();
    std::cout << "\ntrace: " << output << '\n';
  }
  return 0;
}

}  // namespace

int trace_verb(const Arguments& arguments) {
  const auto values = parse(arguments, with_text(trace_options(), "folder"));
  if (values.contains("help")) return print_trace_help();
  const auto folders = values.contains("folder") ? values["folder"].as<Arguments>() : Arguments();
  if (folders.size() != 1) {
    throw UsageError(
        {.what = text::concat("Expected one folder, got ", folders.size()), .hint = "hortator trace runs/train"});
  }
  return values.contains("flight") ? show_flight(folders.front(), values) : join_traces(folders.front(), values);
}

}  // namespace hortator::tools
