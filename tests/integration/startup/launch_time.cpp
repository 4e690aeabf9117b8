// launch_time RUNS HORTATOR PROGRAM [PEER...]: measures start-up and prints lines of JSON. First the seconds from the
// start of `hortator launch -n 2 PROGRAM` to the end of PROGRAM's first step, compared with the command that the
// launcher runs and, if given, with PEER (the command for Accelerate), in turns; each writes the time of its first step
// to the file that is its last argument. Then the launcher's own time, with an mpirun that starts nothing:
// launcher_cpu_s is processor time, which depends little on other programs of the machine, launcher_wall_s the shortest
// elapsed time.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

struct Used {
  double wall = 0;
  double cpu = 0;  ///< of all processes that it has waited for
};

Used run(Arguments command) {
  std::vector<char*> arguments;
  for (auto& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const double begin = seconds_now();
  pid_t child = 0;
  int status = 1;
  rusage usage{};
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0)
    wait4(child, &status, 0, &usage);
  if (status != 0) die("'" + command[0] + "' failed");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {.wall = seconds_now() - begin, .cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime)};
}

double time_to_first_step(Arguments command, const std::string& file) {
  command.push_back(file);
  const double begin = seconds_now();
  run(command);
  double end = 0;
  if (!(std::ifstream(file) >> end)) die("'" + command[0] + "' did not reach its first step");
  fs::remove(file);
  return end - begin;
}

std::string first_line(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string line;
  for (int c = pipe == nullptr ? EOF : std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe))
    line += static_cast<char>(c);
  if (pipe != nullptr) pclose(pipe);
  return line;
}

Arguments split_line(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

void print_pair(const std::string& reference, const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::printf(
      "{\"name\": \"startup\", \"params\": {\"ranks\": 2}, \"reference\": \"%s\", \"reference_median_s\": %.3f, "
      "\"median_s\": %.3f, \"min_s\": %.3f, \"ratio\": %.3f, \"runs\": %zu}\n",
      reference.c_str(), median(theirs), median(ours), *std::min_element(ours.begin(), ours.end()),
      median(ours) / median(theirs), ours.size());
}

/// Puts an mpirun first on PATH that prints its version and otherwise does nothing.
class StubMpirun {
 public:
  explicit StubMpirun(const fs::path& folder) : folder_(fs::absolute(folder)) {
    const auto real = first_line("command -v mpirun");
    fs::create_directories(folder_);
    std::ofstream(folder_ / "mpirun") << "#!/bin/sh\n[ \"$1\" != --version ] || exec " << real << " --version\n";
    fs::permissions(folder_ / "mpirun", fs::perms::owner_all);
    setenv("PATH", (folder_.string() + ":" + std::getenv("PATH")).c_str(), 1);
  }
  ~StubMpirun() { fs::remove_all(folder_); }
  StubMpirun(const StubMpirun&) = delete;
  StubMpirun& operator=(const StubMpirun&) = delete;

 private:
  fs::path folder_;
};

void time_launcher(const Arguments& launch, int runs, const std::string& name) {
  const StubMpirun stub(name);
  std::vector<double> wall;
  std::vector<double> cpu;
  for (int i = 0; i < runs; ++i) {
    const auto used = run(launch);
    wall.push_back(used.wall);
    cpu.push_back(used.cpu);
  }
  std::printf(
      "{\"name\": \"launcher\", \"params\": {\"launcher_cpu_s\": %.4f, \"launcher_wall_s\": %.4f}, \"runs\": %d}\n",
      median(cpu), *std::min_element(wall.begin(), wall.end()), runs);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int runs = std::atoi(argv[1]);
  const std::string file = "first_step." + std::to_string(getpid());
  const Arguments ours = {argv[2], "launch", "-n", "2", argv[3]};
  const Arguments itself = split_line(first_line(std::string(argv[2]) + " launch -n 2 --dry-run " + argv[3]));
  const Arguments peer(argv + 4, argv + argc);
  std::vector<double> our_times;
  std::vector<double> own_times;
  std::vector<double> peer_times;
  for (int i = 0; i < runs; ++i) {
    our_times.push_back(time_to_first_step(ours, file));
    own_times.push_back(time_to_first_step(itself, file));
    if (!peer.empty()) peer_times.push_back(time_to_first_step(peer, file));
  }
  print_pair("the launcher's command", our_times, own_times);
  if (!peer.empty()) print_pair("Accelerate", our_times, peer_times);
  time_launcher(ours, runs, file + ".bin");
}
