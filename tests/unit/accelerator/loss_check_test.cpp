// A loss that is not a number, seen through the facade.
#include <unistd.h>
#include <limits>
#include <sstream>

#include <cstdio>
#include <fstream>

#include "fixtures.hpp"
#include "support/catch.hpp"

using namespace hortator;

namespace {

/// What this process writes on standard error meanwhile.
class StandardError {
 public:
  StandardError() : saved_(dup(STDERR_FILENO)), file_(std::tmpfile()) { dup2(fileno(file_), STDERR_FILENO); }
  ~StandardError() {
    restore();
    std::fclose(file_);
  }
  StandardError(const StandardError&) = delete;
  StandardError& operator=(const StandardError&) = delete;
  std::string text() {
    restore();
    std::string all(static_cast<std::size_t>(std::max(0L, (std::fseek(file_, 0, SEEK_END), std::ftell(file_)))), ' ');
    std::rewind(file_);
    all.resize(std::fread(all.data(), 1, all.size(), file_));
    return all;
  }

 private:
  void restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(std::exchange(saved_, -1));
  }
  int saved_;
  std::FILE* file_;
};

}  // namespace

TEST_CASE("a loss that is not a number warns once on the rank that has it, and names the step") {
  Accelerator accelerator;
  torch::nn::Linear net(3, 1);
  auto model = accelerator.prepare(net);
  StandardError lines;
  for (int step = 1; step <= 5; ++step) {
    const bool is_bad = step >= 3 && accelerator.is_last_process();
    accelerator.backward(model(at::full({1, 3}, is_bad ? std::numeric_limits<double>::quiet_NaN() : 1)).sum());
  }
  const auto text = lines.text();
  const auto words = std::string("the loss of backward pass 3 is not a finite number");
  CHECK((text.find(words) != std::string::npos) == accelerator.is_last_process());
  CHECK(text.find("finite", text.find("finite") + 1) == std::string::npos);
}
