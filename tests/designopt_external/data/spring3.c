/* The functions of FMI 3.0.1 for studies/spring_fmu/spring_model.h, with an integer and a Boolean parameter. */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include "spring_model.h"

typedef void *Instance;
typedef const char *String;
typedef unsigned int Reference;
typedef enum { OK, WARNING, DISCARD, ERROR, FATAL } Status;
typedef void (*Logger)(void *, Status, String, String);
typedef struct {
  double v[COUNT];
  int gear;
  bool reversed;
  Logger logger;
} Spring;

static void start(Spring *spring) {
  memcpy(spring->v, START, sizeof START);
  spring->gear = 1;
  spring->reversed = false;
}
static Instance create(Logger logger, String resources) {
  Spring *spring = calloc(1, sizeof(Spring));
  start(spring);
  spring->logger = logger;
  /* instantiate */
  return spring;
}
static void loaded(Spring *spring, double *v) {
  memcpy(v, spring->v, sizeof spring->v);
  v[FORCE] *= spring->gear * (spring->reversed ? -1.0 : 1.0);
}

String fmi3GetVersion(void) { return "3.0"; }
Instance fmi3InstantiateCoSimulation(String name, String token, String resources, bool visible, bool logging, bool events,
                                     bool early, const Reference r[], size_t n, void *environment, Logger logger,
                                     void *update) {
  return create(logger, resources);
}
Instance fmi3InstantiateModelExchange(String name, String token, String resources, bool visible, bool logging,
                                      void *environment, Logger logger) {
  return create(logger, resources);
}
void fmi3FreeInstance(Instance i) { free(i); }
Status fmi3EnterInitializationMode(Instance i, bool tolerant, double tolerance, double begin, bool ends, double stop) {
  return OK;
}
Status fmi3ExitInitializationMode(Instance i) { return OK; }
Status fmi3Terminate(Instance i) { return OK; }
Status fmi3Reset(Instance i) {
  start(i);
  return OK;
}
Status fmi3GetFloat64(Instance i, const Reference r[], size_t n, double value[], size_t count) {
  double v[COUNT];
  loaded(i, v);
  derive(v);
  v[FORCE] = ((Spring *)i)->v[FORCE];
  for (size_t k = 0; k < n; k++) value[k] = v[r[k]];
  return OK;
}
Status fmi3SetFloat64(Instance i, const Reference r[], size_t n, const double value[], size_t count) {
  for (size_t k = 0; k < n; k++) ((Spring *)i)->v[r[k]] = value[k];
  return OK;
}
Status fmi3SetInt32(Instance i, const Reference r[], size_t n, const int value[], size_t count) {
  ((Spring *)i)->gear = value[0];
  return OK;
}
Status fmi3SetBoolean(Instance i, const Reference r[], size_t n, const bool value[], size_t count) {
  ((Spring *)i)->reversed = value[0];
  return OK;
}
Status fmi3DoStep(Instance i, double time, double size, bool final, bool *event, bool *terminate, bool *early,
                  double *last) {
  double v[COUNT];
  loaded(i, v);
  advance(v, size);
  for (int k = 0; k < 4; k++) ((Spring *)i)->v[STATES[k]] = v[STATES[k]];
  *event = *terminate = *early = false;
  *last = time + size;
  return OK;
}
Status fmi3EnterEventMode(Instance i) { return OK; }
Status fmi3UpdateDiscreteStates(Instance i, bool *discrete, bool *terminate, bool *nominals, bool *values, bool *defined,
                                double *time) {
  *discrete = *terminate = *nominals = *values = *defined = false;
  return OK;
}
Status fmi3EnterContinuousTimeMode(Instance i) { return OK; }
Status fmi3CompletedIntegratorStep(Instance i, bool final, bool *event, bool *terminate) {
  *event = *terminate = false;
  return OK;
}
Status fmi3SetTime(Instance i, double time) { return OK; }
Status fmi3SetContinuousStates(Instance i, const double x[], size_t n) {
  for (size_t k = 0; k < n; k++) ((Spring *)i)->v[STATES[k]] = x[k];
  return OK;
}
Status fmi3GetContinuousStates(Instance i, double x[], size_t n) {
  for (size_t k = 0; k < n; k++) x[k] = ((Spring *)i)->v[STATES[k]];
  return OK;
}
Status fmi3GetContinuousStateDerivatives(Instance i, double rate[], size_t n) {
  double v[COUNT];
  loaded(i, v);
  derive(v);
  for (size_t k = 0; k < n; k++) rate[k] = v[RATES[k]];
  return OK;
}
Status fmi3GetEventIndicators(Instance i, double z[], size_t n) { return OK; }
Status fmi3GetNominalsOfContinuousStates(Instance i, double x[], size_t n) {
  for (size_t k = 0; k < n; k++) x[k] = 1.0;
  return OK;
}
Status fmi3GetNumberOfEventIndicators(Instance i, size_t *n) {
  *n = 0;
  return OK;
}
Status fmi3GetNumberOfContinuousStates(Instance i, size_t *n) {
  *n = 4;
  return OK;
}
