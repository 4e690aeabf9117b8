#pragma once

// All of Hortator.
#include <hortator/accelerator.hpp>
#include <hortator/data.hpp>
#include <hortator/data_parallel.hpp>
#include <hortator/error.hpp>
#include <hortator/find_batch_size.hpp>
#include <hortator/gradient_scopes.hpp>
#include <hortator/objects.hpp>
#include <hortator/random.hpp>
#include <hortator/run.hpp>
#include <hortator/schedule.hpp>
#include <hortator/state.hpp>
#include <hortator/state_dict.hpp>
#include <hortator/version.hpp>
