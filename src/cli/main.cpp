#include <exception>
#include <hortator/error.hpp>
#include <iostream>

#include "cli/verbs.hpp"

int main(int argc, char** argv) {
  try {
    return hortator::cli::run({argv + 1, argv + argc});
  } catch (const hortator::UsageError& error) {
    std::cerr << "hortator: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "hortator: " << error.what() << "\n";
    return 1;
  }
}
