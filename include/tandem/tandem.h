#pragma once

#include <tandem/batch_norm.h>
#include <tandem/check_replicas.h>
#include <tandem/clip.h>
#include <tandem/communicator.h>
#include <tandem/config.h>
#include <tandem/ddp.h>
#include <tandem/error.h>
#include <tandem/optimizer.h>
#include <tandem/recompute.h>
#include <tandem/run_worker.h>
#include <tandem/shard.h>
#include <tandem/store.h>
#include <tandem/sync_batchnorm.h>
#include <tandem/units.h>
#include <tandem/work.h>
#include <tandem/world.h>
