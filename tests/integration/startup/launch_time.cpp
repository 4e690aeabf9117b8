// launch_time RUNS HORTATOR PROGRAM: seconds from starting `hortator launch -n 2 PROGRAM`, and from starting the
// command that it would run itself, to the end of PROGRAM's first step, in turns. A line of JSON; launcher_s is the
// median of what the launcher adds.
#include <spawn.h>
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

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double time_to_first_step(std::vector<std::string> words, const std::string& file) {
  words.push_back(file);
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const double begin = seconds_now();
  pid_t child = 0;
  int status = 1;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ) == 0) waitpid(child, &status, 0);
  double end = 0;
  if (status != 0 || !(std::ifstream(file) >> end)) {
    std::fprintf(stderr, "%s did not come to its first step\n", words[0].c_str());
    std::exit(1);
  }
  std::filesystem::remove(file);
  return end - begin;
}

std::vector<std::string> words_of(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string line;
  for (int c = pipe == nullptr ? EOF : std::fgetc(pipe); c != EOF && c != '\n'; c = std::fgetc(pipe))
    line += static_cast<char>(c);
  if (pipe != nullptr) pclose(pipe);
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string file = "first_step." + std::to_string(getpid());
  const std::vector<std::string> ours = {argv[2], "launch", "-n", "2", argv[3]};
  const auto reference = words_of(std::string(argv[2]) + " launch -n 2 --dry-run " + argv[3]);
  std::vector<double> our_times;
  std::vector<double> reference_times;
  std::vector<double> differences;
  for (int run = 0; run < std::atoi(argv[1]); ++run) {
    our_times.push_back(time_to_first_step(ours, file));
    reference_times.push_back(time_to_first_step(reference, file));
    differences.push_back(our_times.back() - reference_times.back());
  }
  std::printf(
      "{\"name\": \"startup\", \"params\": {\"ranks\": 2, \"launcher_s\": %.3f}, \"reference\": \"the command "
      "itself\", "
      "\"median_s\": %.3f, \"min_s\": %.3f, \"ratio\": %.3f, \"runs\": %zu}\n",
      median(differences), median(our_times), *std::min_element(our_times.begin(), our_times.end()),
      median(our_times) / median(reference_times), our_times.size());
}
