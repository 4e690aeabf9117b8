// Tensor ranks that run out of batches together, while others go on, against ranks with whole models.
#include <vector>

#include "divided_run.hpp"

using namespace hortator;
using test::append_weights;
using test::check_near;
using test::data_of;
using test::DividedByTensor;
using test::DividedRun;
using test::on_first;

TEST_CASE("tensor ranks without batches follow the parts of the others, and take over parts and moments of the last") {
  for (const bool first_ends_first : {true, false}) {
    const auto scenario = [&](AcceleratorOptions options) {
      options.data.even_batches = false;
      options.ddp.bucket_cap_mb = 1e-9;
      DividedRun<DividedByTensor> run(options);
      const auto index = data_of(run.accelerator).index();
      const auto learn = [&](int step) {
        run.accelerator.backward(run.loss(step));
        run.accelerator.clip_grad_norm_(run.model.parameters(), 0.5);
        run.optimizer.step();
        run.optimizer.zero_grad();
      };
      std::vector<double> numbers;
      for (int epoch = 0; epoch < 2; ++epoch) {
        {
          const auto joined = run.accelerator.join_uneven_inputs({run.model});
          const int steps = (index == 0) == first_ends_first ? epoch : 3;
          for (int step = 0; step < steps; ++step) learn(step);
        }
        append_weights(numbers, run.accelerator, run.model);
        learn(4);  // with moments that all ranks share
        append_weights(numbers, run.accelerator, run.model);
      }
      return numbers;
    };
    INFO("the first ends first: " << first_ends_first);
    const auto expected = on_first(2, scenario);
    check_near(scenario(DividedByTensor::on_two({})), expected);
  }
}
