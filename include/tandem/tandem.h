#pragma once

#include <tandem/communicator.h>
#include <tandem/config.h>
#include <tandem/error.h>
#include <tandem/run_worker.h>
#include <tandem/store.h>
#include <tandem/units.h>
#include <tandem/work.h>
#include <tandem/world.h>
