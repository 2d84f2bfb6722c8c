/** Made by "npm run types" from the server's OpenAPI description: not to be edited. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface paths {
  "/api/operators": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["operators_api_operators_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["list_workflows_api_workflows_get"];
    put?: never;
    post: operations["new_workflow_api_workflows_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/examples": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["examples_api_examples_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/examples/{name}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["new_example_api_examples__name__post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["workflow_api_workflows__id__get"];
    put: operations["replace_workflow_api_workflows__id__put"];
    post?: never;
    delete: operations["delete_workflow_api_workflows__id__delete"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}/export": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["export_api_workflows__id__export_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}/check": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["check_workflow_api_workflows__id__check_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/check": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["check_document_api_check_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}/versions": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["versions_api_workflows__id__versions_get"];
    put?: never;
    post: operations["new_version_api_workflows__id__versions_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}/versions/{number}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["version_api_workflows__id__versions__number__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}/versions/{number}/restore": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["restore_api_workflows__id__versions__number__restore_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/files": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["list_files_api_files_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/files/{path}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["download_api_files__path__get"];
    put: operations["upload_api_files__path__put"];
    post?: never;
    delete: operations["delete_api_files__path__delete"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["executions_api_executions_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}/run": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["run_workflow_api_workflows__id__run_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["execution_api_executions__id__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/stop": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["stop_api_executions__id__stop_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["recordings_api_recordings_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["recording_api_recordings__run__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/results/{sink}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["results_api_recordings__run__results__sink__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/rejected/{operator}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["rejected_api_recordings__run__rejected__operator__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/jump": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["jump_api_recordings__run__jump_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/step": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["step_api_recordings__run__step_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/visit": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["visit_api_recordings__run__visit_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/first": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["first_api_recordings__run__first_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/failure": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["failure_api_recordings__run__failure_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["moment_api_recordings__run__moments__moment__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}/state/{operator}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["state_api_recordings__run__moments__moment__state__operator__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}/pending/{operator}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["pending_api_recordings__run__moments__moment__pending__operator__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}/steps/{operator}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["can_step_api_recordings__run__moments__moment__steps__operator__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}/lines/{operator}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["lines_api_recordings__run__moments__moment__lines__operator__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}/last_change": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["last_change_api_recordings__run__moments__moment__last_change_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}/scope": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["scope_api_recordings__run__moments__moment__scope_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/moments/{moment}/fork": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["fork_api_recordings__run__moments__moment__fork_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/notebook": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["notebook_api_recordings__run__notebook_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/notes": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["pin_api_recordings__run__notes_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/notes/{note}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete: operations["unpin_api_recordings__run__notes__note__delete"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/pause": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["pause_api_executions__id__pause_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/resume": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["resume_api_executions__id__resume_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/inspect": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["inspect_api_executions__id__inspect_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/held": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["held_api_executions__id__held_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/console": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["console_api_executions__id__console_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/retry": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["retry_api_executions__id__retry_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/skip": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["skip_api_executions__id__skip_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/modify": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["modify_api_executions__id__modify_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/watch": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["watch_api_executions__id__watch_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/break": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["break_at_api_executions__id__break_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/watches/{name}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post?: never;
    delete: operations["unwatch_api_executions__id__watches__name__delete"];
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/executions/{id}/interact": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["interact_api_executions__id__interact_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/compare": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["compare_api_compare_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/comparisons/{comparison}/cause": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["cause_api_comparisons__comparison__cause_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/results/{sink}/statistics": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["statistics_api_recordings__run__results__sink__statistics_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/results/{sink}/statistics/{column}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["values_api_recordings__run__results__sink__statistics__column__get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/recordings/{run}/charts": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["charts_api_recordings__run__charts_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/lint": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["lint_api_lint_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/sql/functions": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get: operations["functions_api_sql_functions_get"];
    put?: never;
    post?: never;
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/sql": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["check_sql_api_sql_post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
  "/api/workflows/{id}/try/{operator}": {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    get?: never;
    put?: never;
    post: operations["try_out_api_workflows__id__try__operator__post"];
    delete?: never;
    options?: never;
    head?: never;
    patch?: never;
    trace?: never;
  };
}
export type webhooks = Record<string, never>;
export interface components {
  schemas: {
    AddressData: {
      to: {
        [key: string]: string | number | boolean;
      };
      steps: [string, string | null][];
    };
    Asked: {
      /** @default  */
      by?: string;
    };
    CanStepData: {
      operator: string;
      over: boolean;
      why_not: string | null;
    };
    Cause: {
      /**
       * @default left
       * @enum {string}
       */
      side?: "left" | "right";
    };
    CauseData: {
      run: string;
      operator: string | null;
      moment: components["schemas"]["MomentData"];
    };
    Change: {
      operator: string;
      name: string;
      key?: unknown;
      /** @default false */
      keyed?: boolean;
    };
    ChangeData: {
      operator: string;
      name: string;
      key: Json;
      keyed: boolean;
      before: Json;
      after: Json;
    };
    CheckedData: {
      problems: components["schemas"]["DocumentProblemData"][];
      schemas: {
        [key: string]: components["schemas"]["ColumnData"][];
      };
      deep: boolean;
    };
    Code: {
      code: string;
    };
    ColumnData: {
      name: string;
      type: string;
    };
    ColumnFiguresData: {
      name: string;
      type: string;
      rows: number;
      nulls: number;
      distinct: Json;
      least: Json;
      greatest: Json;
      mean: Json;
    };
    ColumnOf: {
      name: string;
      type: string;
    };
    Compare: {
      left: string;
      right: string;
      sink?: string | null;
      /**
       * @default any
       * @enum {string}
       */
      order?: "any" | "all" | "keys";
      keys?: string[];
      columns?: string[] | null;
      tolerance?: number | null;
    };
    ComparisonData: {
      comparison: string;
      equivalent: boolean;
      depends: string;
      rows: components["schemas"]["SidesData"];
      without_partner: components["schemas"]["SidesData"];
      explanation: string;
      pairs: components["schemas"]["PairData"][];
    };
    ConsoleLineData: {
      at: number;
      operator: string;
      epoch: number;
      text: string;
    };
    CountersData: {
      taken: number[];
      given: number;
    };
    DeedData: {
      at: number;
      by: string;
      did: string;
      operator?: string | null;
    };
    DeedEntryData: {
      at: number;
      by: string;
      did: string;
      operator?: string | null;
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      kind: "did";
      id: string;
    };
    DocumentProblemData: {
      kind: string;
      message: string;
      hint: string | null;
      operator: string | null;
      field: string | null;
    };
    EpochData: {
      epoch: number;
      level: number;
      seconds: number;
      at: number;
      taken: {
        [key: string]: number;
      };
    };
    ExecutionData: {
      execution: string;
      workflow: string | null;
      title: string;
      by: string;
      asked: number;
      status: string;
      stopped_by: string | null;
      paused_by: string | null;
      parent: string | null;
      run: string | null;
      progress: components["schemas"]["ProgressData"] | null;
      live: {
        [key: string]: components["schemas"]["LiveFiguresData"];
      };
      held: components["schemas"]["HoldData"][];
      reached: components["schemas"]["ReachedData"][];
      watches: components["schemas"]["WatchData"][];
      printed: number;
      deeds: components["schemas"]["DeedData"][];
      error: components["schemas"]["ProblemData"] | null;
    };
    FileData: {
      path: string;
      bytes: number;
      changed: number;
    };
    Fork: {
      /** @default  */
      by?: string;
      changes?: {
        [key: string]: string;
      };
      row?: {
        [key: string]: unknown;
      } | null;
      workflow?: string | null;
    };
    FoundMomentData: {
      found: components["schemas"]["MomentData"] | null;
    };
    HeldTupleData: {
      hold: string;
      operator: string;
      epoch: number;
      error: string;
      row: {
        [key: string]: Json;
      };
      traceback: string;
      locals: {
        [key: string]: string;
      };
      state: string;
    };
    HoldData: {
      hold: string;
      operator: string;
      epoch: number;
      error: string;
    };
    InspectionData: {
      operator: string;
      epoch: number;
      consistent: boolean;
      note: string;
      state: {
        [key: string]: components["schemas"]["MapStateData"] | components["schemas"]["ValueStateData"];
      };
      tuples: number;
      in_flight:
        | {
            [key: string]: Json;
          }[]
        | null;
      more: number;
    };
    InteractionData: {
      id: string;
      at: number;
      operator: string;
      epoch: number;
      tuples?: number;
      position?: Json;
      note?: string;
      by?: string;
    };
    Jump: {
      interaction?: string | null;
      operator?: string | null;
      tuples?: number | null;
      epoch?: number | null;
    };
    LineData: {
      number: number;
      text: string;
      event: string;
      locals: {
        [key: string]: Json;
      };
      value: Json;
    };
    LintData: {
      problems: components["schemas"]["RemarkData"][];
    };
    LiveFiguresData: {
      taken: number;
      given: number;
      rate: number;
      busy: number;
      queue: number;
      workers: number;
      state_entries: number;
      state_bytes: number;
      skew: number;
      a_tuple: number | null;
    };
    Look: {
      /** @default  */
      by?: string;
      operator: string;
    };
    MapStateData: {
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      kind: "map";
      size: number;
      start: number;
      entries: [Json, Json][];
    };
    Mark: {
      /** @default  */
      by?: string;
      operator: string;
      /** @default  */
      note?: string;
    };
    MarkedData: {
      interaction: string;
    };
    Modify: {
      /** @default  */
      by?: string;
      changes: {
        [key: string]:
          | string
          | string[]
          | {
              [key: string]: unknown;
            };
      };
      /**
       * @default strict
       * @enum {string}
       */
      consistency?: "strict" | "backward" | "none";
    };
    MomentAddress: {
      to: components["schemas"]["Jump"] | components["schemas"]["When"] | components["schemas"]["ToFailure"];
      steps?: ["over" | "into" | "out" | "back", string | null][];
    };
    MomentData: {
      moment: string;
      epoch: number;
      counters: {
        [key: string]: components["schemas"]["CountersData"];
      };
      last: components["schemas"]["StepData"] | null;
      changes: components["schemas"]["ChangeData"][];
      address: components["schemas"]["AddressData"];
    };
    NewBreakpoint: {
      /** @default  */
      by?: string;
      operator: string;
      condition?: string | null;
      tuples?: number | null;
      outputs?: number | null;
    };
    NewVersion: {
      name: string;
      /** @default  */
      by?: string;
    };
    NewWatch: {
      /** @default  */
      by?: string;
      operator: string;
      condition: string;
    };
    NewWorkflow: {
      name: string;
      document?:
        | {
            [key: string]: unknown;
          }
        | string
        | null;
      layout?: {
        [key: string]: [number, number];
      } | null;
    };
    Note: {
      /** @default  */
      by?: string;
      moment: string;
      text: string;
    };
    NoteEntryData: {
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      kind: "note";
      id: string;
      at: number;
      by: string;
      text: string;
      address: components["schemas"]["AddressData"];
      epoch: number;
    };
    OperatorKindData: {
      op: string;
      group: string;
      summary: string;
      description: string;
      ports: components["schemas"]["PortsData"];
      output: boolean;
      start: {
        [key: string]: Json;
      };
      presets: components["schemas"]["PresetData"][];
      schema: {
        [key: string]: Json;
      };
    };
    OperatorProgressData: {
      name: string;
      kind: string;
      taken: number;
      given: number;
      rate: number;
      state_entries: number;
      state_bytes: number;
    };
    OperatorStateData: {
      operator: string;
      state: {
        [key: string]: components["schemas"]["MapStateData"] | components["schemas"]["ValueStateData"];
      };
    };
    PageData: {
      columns: components["schemas"]["ColumnData"][];
      rows: {
        [key: string]: Json;
      }[];
      start: number;
      total: number | null;
    };
    PairData: {
      left: {
        [key: string]: Json;
      } | null;
      right: {
        [key: string]: Json;
      } | null;
      differ: string[];
    };
    Pause: {
      /** @default  */
      by?: string;
      /**
       * @default direct
       * @enum {string}
       */
      mode?: "direct" | "aligned";
    };
    PendingTupleData: {
      from: string;
      row: {
        [key: string]: Json;
      };
    };
    PortsData: {
      least: number;
      most: number | null;
    };
    PresetData: {
      title: string;
      summary: string;
      start: {
        [key: string]: Json;
      };
    };
    ProblemData: {
      kind: string;
      message: string;
      hint: string | null;
      operator: string | null;
    };
    ProgressData: {
      run: string;
      workflow: string;
      status: string;
      epoch: number;
      fraction: number;
      seconds: number;
      operators: components["schemas"]["OperatorProgressData"][];
      rejected: {
        [key: string]: number;
      };
      note: string;
    };
    RangeData: {
      from: Json;
      to: Json;
      rows: number;
    };
    ReachedData: {
      operator: string;
      epoch: number;
      row: {
        [key: string]: Json;
      } | null;
      note: string;
    };
    RecordedOperatorData: {
      name: string;
      op: string;
      inputs: string[];
    };
    RecordingData: {
      run: string;
      workflow: string | null;
      parent: string | null;
      started: number | null;
      status: string;
      epochs: number;
      error: components["schemas"]["ProblemData"] | null;
      progress: components["schemas"]["ProgressData"];
      epoch_list: components["schemas"]["EpochData"][];
      failed_epoch: number | null;
      message: string | null;
      interactions: components["schemas"]["InteractionData"][];
      operators: components["schemas"]["RecordedOperatorData"][];
      code: {
        [key: string]: string | null;
      };
      sinks: string[];
    };
    RecordingSummaryData: {
      run: string;
      workflow: string | null;
      parent: string | null;
      started: number | null;
      status: string;
      epochs: number;
      error: components["schemas"]["ProblemData"] | null;
    };
    RejectedData: {
      operator: string;
      total: number;
      rows: {
        [key: string]: Json;
      }[];
    };
    RemarkData: {
      line: number;
      column: number;
      message: string;
    };
    Retry: {
      /** @default  */
      by?: string;
      operator?: string | null;
      row?: {
        [key: string]: unknown;
      } | null;
    };
    RunAsked: {
      /** @default  */
      by?: string;
      to?: string | null;
      /**
       * @default fail
       * @enum {string}
       */
      on_error?: "fail" | "hold";
      version?: number | null;
    };
    Scope: {
      /** @enum {string} */
      of: "pending" | "taken" | "given";
      /** @default  */
      operator?: string;
      /** @default 0 */
      number?: number;
    };
    ScopeData: {
      operators: string[];
      from: string[];
      tuples: components["schemas"]["ScopeTupleData"][];
    };
    ScopeTupleData: {
      operator: string;
      row: {
        [key: string]: Json;
      };
    };
    SidesData: {
      left?: number;
      right?: number;
    };
    Skip: {
      /** @default  */
      by?: string;
      operator?: string | null;
      /** @default false */
      all_like_it?: boolean;
    };
    Sql: {
      sql: string;
      columns?: components["schemas"]["ColumnOf"][];
      /**
       * @default expression
       * @enum {string}
       */
      form?: "expression" | "condition" | "sort";
    };
    SqlFunctionData: {
      name: string;
    };
    SqlProblemData: {
      message: string;
      hint: string | null;
    };
    SqlVerdictData: {
      problem: components["schemas"]["SqlProblemData"] | null;
      type: string | null;
    };
    StepData: {
      operator: string;
      port: number;
      row: {
        [key: string]: Json;
      } | null;
      outputs: {
        [key: string]: Json;
      }[];
      changes: components["schemas"]["ChangeData"][];
    };
    StepRequest: {
      moment: string;
      /** @enum {string} */
      how: "over" | "into" | "out" | "back";
      operator?: string | null;
    };
    ToFailure: {
      /** @constant */
      failure: true;
    };
    TrialData: {
      given: {
        [key: string]: Json;
      }[];
      rows: {
        [key: string]: Json;
      }[];
      columns: components["schemas"]["ColumnData"][];
      error: components["schemas"]["ProblemData"] | null;
    };
    UploadData: {
      path: string;
      bytes: number;
    };
    ValueCountData: {
      value: Json;
      rows: number;
    };
    ValueStateData: {
      /**
       * @description discriminator enum property added by openapi-typescript
       * @enum {string}
       */
      kind: "value";
      value: Json;
    };
    VersionData: {
      version: number;
      name: string;
      by: string;
      at: number;
    };
    WatchData: {
      name: string;
      operator: string;
      condition: string | null;
      tuples: number | null;
      outputs: number | null;
      pause: boolean;
      by: string;
    };
    When: {
      operator: string;
      predicate: string;
    };
    WorkflowData: {
      workflow: string;
      people: number;
      changed: number;
      document: {
        [key: string]: Json;
      };
      layout: {
        [key: string]: [number, number];
      };
      ids: {
        [key: string]: string;
      };
    };
    WorkflowSummaryData: {
      workflow: string;
      people: number;
      changed: number;
    };
    Json: unknown;
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  operators_api_operators_get: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["OperatorKindData"][];
        };
      };
    };
  };
  list_workflows_api_workflows_get: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WorkflowSummaryData"][];
        };
      };
    };
  };
  new_workflow_api_workflows_post: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewWorkflow"];
      };
    };
    responses: {
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WorkflowSummaryData"];
        };
      };
    };
  };
  examples_api_examples_get: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": {
            [key: string]: string;
          };
        };
      };
    };
  };
  new_example_api_examples__name__post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        name: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WorkflowSummaryData"];
        };
      };
    };
  };
  workflow_api_workflows__id__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WorkflowData"];
        };
      };
    };
  };
  replace_workflow_api_workflows__id__put: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": {
          [key: string]: unknown;
        };
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WorkflowData"];
        };
      };
    };
  };
  delete_workflow_api_workflows__id__delete: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  export_api_workflows__id__export_get: {
    parameters: {
      query?: {
        format?: "yaml" | "json" | "python";
      };
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": unknown;
        };
      };
    };
  };
  check_workflow_api_workflows__id__check_get: {
    parameters: {
      query?: {
        deep?: boolean;
      };
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CheckedData"];
        };
      };
    };
  };
  check_document_api_check_post: {
    parameters: {
      query?: {
        deep?: boolean;
      };
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": {
          [key: string]: unknown;
        };
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CheckedData"];
        };
      };
    };
  };
  versions_api_workflows__id__versions_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["VersionData"][];
        };
      };
    };
  };
  new_version_api_workflows__id__versions_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewVersion"];
      };
    };
    responses: {
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["VersionData"];
        };
      };
    };
  };
  version_api_workflows__id__versions__number__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
        number: number;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": {
            [key: string]: unknown;
          };
        };
      };
    };
  };
  restore_api_workflows__id__versions__number__restore_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
        number: number;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["WorkflowData"];
        };
      };
    };
  };
  list_files_api_files_get: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["FileData"][];
        };
      };
    };
  };
  download_api_files__path__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        path: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": unknown;
        };
      };
    };
  };
  upload_api_files__path__put: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        path: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["UploadData"];
        };
      };
    };
  };
  delete_api_files__path__delete: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        path: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  executions_api_executions_get: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"][];
        };
      };
    };
  };
  run_workflow_api_workflows__id__run_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["RunAsked"];
      };
    };
    responses: {
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  execution_api_executions__id__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  stop_api_executions__id__stop_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Asked"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  recordings_api_recordings_get: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["RecordingSummaryData"][];
        };
      };
    };
  };
  recording_api_recordings__run__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["RecordingData"];
        };
      };
    };
  };
  results_api_recordings__run__results__sink__get: {
    parameters: {
      query?: {
        start?: number;
        count?: number;
        where?: string | null;
        sort?: string | null;
        descending?: boolean;
      };
      header?: never;
      path: {
        run: string;
        sink: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["PageData"];
        };
      };
    };
  };
  rejected_api_recordings__run__rejected__operator__get: {
    parameters: {
      query?: {
        count?: number;
      };
      header?: never;
      path: {
        run: string;
        operator: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["RejectedData"];
        };
      };
    };
  };
  jump_api_recordings__run__jump_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Jump"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["MomentData"];
        };
      };
    };
  };
  step_api_recordings__run__step_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["StepRequest"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["MomentData"];
        };
      };
    };
  };
  visit_api_recordings__run__visit_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["MomentAddress"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["MomentData"];
        };
      };
    };
  };
  first_api_recordings__run__first_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["When"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["FoundMomentData"];
        };
      };
    };
  };
  failure_api_recordings__run__failure_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["FoundMomentData"];
        };
      };
    };
  };
  moment_api_recordings__run__moments__moment__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
        moment: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["MomentData"];
        };
      };
    };
  };
  state_api_recordings__run__moments__moment__state__operator__get: {
    parameters: {
      query?: {
        name?: string | null;
        start?: number;
        where?: string | null;
      };
      header?: never;
      path: {
        run: string;
        moment: string;
        operator: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["OperatorStateData"];
        };
      };
    };
  };
  pending_api_recordings__run__moments__moment__pending__operator__get: {
    parameters: {
      query?: {
        limit?: number;
      };
      header?: never;
      path: {
        run: string;
        moment: string;
        operator: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["PendingTupleData"][];
        };
      };
    };
  };
  can_step_api_recordings__run__moments__moment__steps__operator__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
        moment: string;
        operator: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CanStepData"];
        };
      };
    };
  };
  lines_api_recordings__run__moments__moment__lines__operator__get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
        moment: string;
        operator: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["LineData"][];
        };
      };
    };
  };
  last_change_api_recordings__run__moments__moment__last_change_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
        moment: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Change"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["FoundMomentData"];
        };
      };
    };
  };
  scope_api_recordings__run__moments__moment__scope_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
        moment: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Scope"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ScopeData"];
        };
      };
    };
  };
  fork_api_recordings__run__moments__moment__fork_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
        moment: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Fork"];
      };
    };
    responses: {
      202: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  notebook_api_recordings__run__notebook_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": (
            components["schemas"]["DeedEntryData"] | components["schemas"]["NoteEntryData"]
          )[];
        };
      };
    };
  };
  pin_api_recordings__run__notes_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Note"];
      };
    };
    responses: {
      201: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["NoteEntryData"];
        };
      };
    };
  };
  unpin_api_recordings__run__notes__note__delete: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
        note: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      204: {
        headers: {
          [name: string]: unknown;
        };
        content?: never;
      };
    };
  };
  pause_api_executions__id__pause_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Pause"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  resume_api_executions__id__resume_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Asked"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  inspect_api_executions__id__inspect_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Look"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["InspectionData"];
        };
      };
    };
  };
  held_api_executions__id__held_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["HeldTupleData"][];
        };
      };
    };
  };
  console_api_executions__id__console_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ConsoleLineData"][];
        };
      };
    };
  };
  retry_api_executions__id__retry_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Retry"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  skip_api_executions__id__skip_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Skip"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  modify_api_executions__id__modify_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Modify"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  watch_api_executions__id__watch_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewWatch"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  break_at_api_executions__id__break_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewBreakpoint"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  unwatch_api_executions__id__watches__name__delete: {
    parameters: {
      query?: {
        by?: string;
      };
      header?: never;
      path: {
        id: string;
        name: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ExecutionData"];
        };
      };
    };
  };
  interact_api_executions__id__interact_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Mark"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["MarkedData"];
        };
      };
    };
  };
  compare_api_compare_post: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Compare"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ComparisonData"];
        };
      };
    };
  };
  cause_api_comparisons__comparison__cause_post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        comparison: string;
      };
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Cause"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["CauseData"];
        };
      };
    };
  };
  statistics_api_recordings__run__results__sink__statistics_get: {
    parameters: {
      query?: {
        where?: string | null;
      };
      header?: never;
      path: {
        run: string;
        sink: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["ColumnFiguresData"][];
        };
      };
    };
  };
  values_api_recordings__run__results__sink__statistics__column__get: {
    parameters: {
      query?: {
        where?: string | null;
      };
      header?: never;
      path: {
        run: string;
        sink: string;
        column: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": (
            components["schemas"]["ValueCountData"] | components["schemas"]["RangeData"]
          )[];
        };
      };
    };
  };
  charts_api_recordings__run__charts_get: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        run: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": {
            [key: string]: unknown;
          }[];
        };
      };
    };
  };
  lint_api_lint_post: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Code"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["LintData"];
        };
      };
    };
  };
  functions_api_sql_functions_get: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["SqlFunctionData"][];
        };
      };
    };
  };
  check_sql_api_sql_post: {
    parameters: {
      query?: never;
      header?: never;
      path?: never;
      cookie?: never;
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Sql"];
      };
    };
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["SqlVerdictData"];
        };
      };
    };
  };
  try_out_api_workflows__id__try__operator__post: {
    parameters: {
      query?: never;
      header?: never;
      path: {
        id: string;
        operator: string;
      };
      cookie?: never;
    };
    requestBody?: never;
    responses: {
      200: {
        headers: {
          [name: string]: unknown;
        };
        content: {
          "application/json": components["schemas"]["TrialData"];
        };
      };
    };
  };
}
