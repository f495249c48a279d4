/** The few parts of ComfyUI's frontend that the panel uses, 1.49 to 1.58. */
declare module "*/scripts/app.js" {
  export const app: import("./host").ComfyApp;
}
declare module "*/scripts/api.js" {
  export const api: import("./host").ComfyApi;
}
declare module "*?inline" {
  const text: string;
  export default text;
}
