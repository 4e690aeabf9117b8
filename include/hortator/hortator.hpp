#pragma once

// All of Hortator.
#include <hortator/accelerator.hpp>
#include <hortator/autocast.hpp>
#include <hortator/block_order.hpp>
#include <hortator/data.hpp>
#include <hortator/data_parallel.hpp>
#include <hortator/datasets.hpp>
#include <hortator/error.hpp>
#include <hortator/find_batch_size.hpp>
#include <hortator/grad_scaler.hpp>
#include <hortator/gradient_scopes.hpp>
#include <hortator/local_sgd.hpp>
#include <hortator/objects.hpp>
#include <hortator/precision.hpp>
#include <hortator/profile.hpp>
#include <hortator/random.hpp>
#include <hortator/recompute.hpp>
#include <hortator/reduce_on_plateau.hpp>
#include <hortator/run.hpp>
#include <hortator/safetensors_file.hpp>
#include <hortator/schedule.hpp>
#include <hortator/schedules.hpp>
#include <hortator/state.hpp>
#include <hortator/state_dict.hpp>
#include <hortator/sync_batch_norm.hpp>
#include <hortator/version.hpp>
